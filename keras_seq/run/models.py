"""Builds the Keras model of a run and loads its weights."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from keras_seq import backend
from keras_seq.models import Ensemble
from keras_seq.plugins import plugin_of
from keras_seq.process.devices import check_backend
from keras_seq.run import Run, Shapes
from keras_seq.run.ensembles import open_ensemble
from keras_seq.run.memory import require_model_memory, require_source_memory
from keras_seq.run.weight_names import name_weights, stored_name
from keras_seq.settings import TASKS, Settings
from keras_seq.text import FeatureTokenizer, InputError


def build_model(
    settings: Settings,
    source_vocabulary_size: int,
    target_vocabulary_size: int,
    dtype: str | None = None,
    num_features: int = 0,
) -> keras.Model:
    """Builds the model of `keras_seq.models` that settings describe, with new weights.

    The target vocabulary has all tokens or labels, special ids included. `dtype` is a Keras dtype
    policy such as "mixed_bfloat16", or None for the global one. The last `num_features` ids of the
    source vocabulary are features; only a model with `model.feature_encoder` needs their number.
    Raises InputError if the Keras backend is not supported, or computes this model wrongly.
    """
    check_backend(backend.name())
    _check_lstm(settings)
    require_model_memory(settings, source_vocabulary_size, target_vocabulary_size)
    separate = getattr(settings.model, "feature_encoder", "none") != "none"
    options = {"num_features": num_features} if separate else {}
    model: keras.Model = TASKS[settings.task].model(
        settings, source_vocabulary_size, target_vocabulary_size, dtype, **options
    )
    if plugin_of("family", settings.model.family) is not None:
        _check_model_of_plugin(model, settings)
        name_weights(model)
    return model


def _check_model_of_plugin(model: keras.Model, settings: Settings) -> None:
    """Raises InputError if a model cannot be trained or searched."""
    where = f"model.family {settings.model.family!r}: {type(model).__name__}"
    if not model.built or not model.inputs:
        raise InputError(f"{where} has no weights yet: expected a functional Keras model")
    parts = ("encoder", "initial_state", "decoder_step", "grow_state")
    missing = [part for part in parts if not hasattr(model, part)]
    if missing and not TASKS[settings.task].has_labels:
        raise InputError(f"{where} lacks {', '.join(missing)}, which the search needs")
    if settings.search.coverage_penalty and not hasattr(model, "decoder_step_with_attention"):
        raise InputError(
            f"search.coverage_penalty: received {settings.search.coverage_penalty:g}, expected 0: "
            f"{where} has no `decoder_step_with_attention`"
        )


def _check_lstm(settings: Settings) -> None:
    """Raises InputError for several LSTM decoder layers on a GPU with JAX.

    With jaxlib 0.11.2 on an NVIDIA H200, the compiled program computes other numbers than a CPU and
    than the same program without compilation.
    """
    model = settings.model
    deep = getattr(model, "num_decoder_layers", 1) > 1 and getattr(model, "cell", "") == "lstm"
    if deep and backend.name() == "jax" and backend.device()[0] == "gpu":
        raise InputError(
            "model.num_decoder_layers: JAX computes several LSTM decoder layers wrongly on a GPU: "
            "use model.cell=gru, model.num_decoder_layers=1, --device cpu or --backend tensorflow"
        )


def build_run_model(run: Run, dtype: str | None = None) -> keras.Model:
    """Builds the model of a prepared run, with new weights.

    Raises InputError if the model copies tokens and the vocabularies differ, or if it encodes
    features and the text has none.
    """
    source, target = run.vocabularies
    if run.settings.model.copies:
        pieces = run.target_tokenizer.pieces
        # The source may have features after these pieces.
        if run.source_tokenizer.pieces[: len(pieces)] != pieces:
            raise InputError(
                f"{run.path}: model.copy needs one vocabulary for source and target, but the text "
                "was prepared with two: prepare it with --set model.copy=true"
            )
    num_features = source.num_features if isinstance(source, FeatureTokenizer) else 0
    if not num_features and getattr(run.settings.model, "feature_encoder", "none") != "none":
        raise InputError(f"{run.path}: model.feature_encoder needs features, but the text has none")
    return build_model(
        run.settings, source.vocabulary_size, target.vocabulary_size, dtype, num_features
    )


def named_weights(model: keras.Model) -> dict[str, Any]:
    """Returns the weights of a model by the names under which checkpoints store them."""
    weights = {stored_name(weight): weight for weight in model.weights}
    if len(weights) != len(model.weights):
        raise ValueError("Two weights of the model have one path; give its layers unique names.")
    return weights


def load_model(run: Run, which: str | int = "best", dtype: str | None = None) -> keras.Model:
    """Builds the model of a run and loads a checkpoint; see `CheckpointStore.load`."""
    run.require_weights_of_vocabulary()
    require_source_memory(run.settings)
    model = build_run_model(run, dtype)
    weights = named_weights(model)
    for name, array in run.load_weights(weight_shapes(model), which).items():
        weights[name].assign(array)
    return model


def load_models(
    run: Run,
    others: Sequence[str | os.PathLike[str]] = (),
    which: str | int = "best",
    notice: Callable[[str], None] | None = None,
) -> Any:
    """Loads the model of a run, or an `Ensemble` with the models of other runs.

    See `open_ensemble`. A damaged checkpoint of another run is skipped, and reported to `notice` or
    by a warning.
    """
    return load_ensemble(open_ensemble(run, others, which, notice), which)


def load_ensemble(runs: Sequence[Run], which: str | int = "best") -> Any:
    """Loads the model of one opened run, or an `Ensemble` of the models of several.

    Afterwards the `loaded_step` of each run is the step of its weights.
    """
    models = [load_model(run, which) for run in runs]
    return models[0] if len(models) == 1 else Ensemble(models)


def weight_shapes(model: keras.Model) -> Shapes:
    """Returns shape and dtype of each weight of a model, by name."""
    return {
        name: (tuple(weight.shape), keras.backend.standardize_dtype(weight.dtype))
        for name, weight in named_weights(model).items()
    }


def weight_arrays(model: keras.Model) -> dict[str, np.ndarray]:
    """Returns copies of the weights of a model as numpy arrays, by name."""
    return {name: backend.to_numpy(weight) for name, weight in named_weights(model).items()}
