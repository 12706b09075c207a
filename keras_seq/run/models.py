"""From a run's settings to a Keras model, and from its files to weights."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from keras_seq import backend
from keras_seq.models import Ensemble
from keras_seq.run import Run, Shapes
from keras_seq.runtime.devices import check_backend
from keras_seq.settings import TASKS, Settings
from keras_seq.text import InputError


def build_model(
    settings: Settings,
    source_vocabulary_size: int,
    target_vocabulary_size: int,
    dtype: str | None = None,
) -> keras.Model:
    """Builds the model that settings describe, with new weights.

    Args:
        settings: Those of a run.
        source_vocabulary_size: Number of source tokens.
        target_vocabulary_size: Number of target tokens, those that are no label included.
        dtype: Keras dtype policy, such as "mixed_bfloat16"; the global one if None.

    Returns:
        A model of `keras_seq.models`.

    Raises:
        InputError: Keras' backend neither trains nor decodes here.
    """
    check_backend(backend.name())
    model: keras.Model = TASKS[settings.task].model(
        settings, source_vocabulary_size, target_vocabulary_size, dtype
    )
    return model


def build_run_model(run: Run, dtype: str | None = None) -> keras.Model:
    """Builds the model of a run, with new weights and the run's vocabularies.

    Args:
        run: A prepared run.
        dtype: Keras dtype policy; the global one if None.
    """
    source, target = run.vocabularies
    return build_model(run.settings, source.vocabulary_size, target.vocabulary_size, dtype)


def named_weights(model: keras.Model) -> dict[str, Any]:
    """A model's weights by path, the names under which they are stored."""
    named = {weight.path: weight for weight in model.weights}
    if len(named) != len(model.weights):
        raise ValueError("Two weights of the model have one path; give its layers unique names.")
    return named


def load_model(run: Run, which: str | int = "best") -> keras.Model:
    """Builds the model of a run and reads its weights.

    Args:
        run: An opened run.
        which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.

    Raises:
        InputError: No whole checkpoint, or not this model's.
    """
    model = build_run_model(run)
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
    """Builds the model of a run, or several as one `Ensemble`, and reads the weights.

    Args:
        run: An opened run.
        others: Directories of runs with the same vocabularies; none for the model alone.
        which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.
        notice: Called with a line for each damaged checkpoint of theirs passed over;
            by default it is a warning.

    Raises:
        InputError: No whole checkpoint, or a run with other vocabularies.
    """
    return load_ensemble(open_ensemble(run, others, which, notice), which)


def open_ensemble(
    run: Run,
    others: Sequence[str | os.PathLike[str]],
    which: str | int = "best",
    notice: Callable[[str], None] | None = None,
) -> list[Run]:
    """Opens the other runs of an ensemble and checks that all can work together.

    Args:
        run, others, which, notice: As for `load_models`.

    Returns:
        `run` and the others.

    Raises:
        InputError: A run without this checkpoint, or with other vocabularies.
    """
    runs = [run, *(Run.open(other, notice=notice) for other in others)]
    for other in runs[1:]:
        other.require_weights(which)
        if _vocabularies(other) != _vocabularies(run):
            raise InputError(
                f"{other.path}: its vocabulary is not that of {run.path}, and the runs of an "
                "ensemble share theirs: train them on the same prepared text, with "
                "different seeds"
            )
    return runs


def load_ensemble(runs: Sequence[Run], which: str | int = "best") -> Any:
    """Loads the model of one run, or an `Ensemble` of the models of several.

    Each run's `loaded_step` is then the step of the weights that were read.

    Args:
        runs: Opened runs, as `open_ensemble` returns them.
        which: Checkpoint of each run: `"best"`, `"latest"`, or the step of a stored one.
    """
    models = [load_model(run, which) for run in runs]
    return models[0] if len(models) == 1 else Ensemble(models)


def _vocabularies(run: Run) -> list[bytes]:
    return [vocabulary.to_bytes() for vocabulary in run.vocabularies]


def weight_shapes(model: keras.Model) -> Shapes:
    """Shape and dtype of each weight, by path."""
    return {
        name: (tuple(weight.shape), keras.backend.standardize_dtype(weight.dtype))
        for name, weight in named_weights(model).items()
    }


def weight_arrays(model: keras.Model) -> dict[str, np.ndarray]:
    """Copies of a model's weights as numpy arrays, by path."""
    return {name: backend.to_numpy(weight) for name, weight in named_weights(model).items()}
