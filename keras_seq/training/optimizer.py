"""Freezes weights of a model and compiles the model with the settings of a run."""

import fnmatch
from collections.abc import Sequence
from typing import Any

import keras

from keras_seq import backend
from keras_seq.losses.sequence_cross_entropy import SequenceCrossEntropy
from keras_seq.run.models import named_weights
from keras_seq.schedules.learning_rates import InverseSquareRoot, noam, warmup_cosine
from keras_seq.settings import Settings
from keras_seq.text import InputError
from keras_seq.training.skipping_adam import SkippingAdam


def make_optimizer(settings: Settings, max_steps: int | None = None) -> keras.optimizers.Optimizer:
    """Returns Adam with the schedule, clipping and moving average of the settings.

    `max_steps` is the number of updates after which the schedule `cosine` ends.
    """
    training = settings.training
    rate: Any = training.learning_rate
    if training.schedule == "inverse_sqrt":
        rate = InverseSquareRoot(training.learning_rate, training.warmup_steps)
    elif training.schedule == "noam":
        rate = noam(training.learning_rate, settings.model.output_width, training.warmup_steps)
    elif training.schedule == "cosine":
        if max_steps is None:
            raise ValueError("The schedule `cosine` needs `max_steps`, received None.")
        rate = warmup_cosine(
            training.learning_rate, training.warmup_steps, max_steps, training.cycles
        )
    return SkippingAdam(
        rate,
        beta_1=training.beta_1,
        beta_2=training.beta_2,
        epsilon=1e-9,
        global_clipnorm=training.clip_norm or None,
        micro_batches=training.micro_batches,
        initial_loss_scale=2.0**15 if training.precision == "float16" else None,
        use_ema=bool(training.ema),
        ema_momentum=training.ema or 0.99,
        # Checkpoints contain this name. Keras would name a second optimizer differently.
        name="adam",
    )


def compile_model(
    model: keras.Model, settings: Settings, loss: Any = None, max_steps: int | None = None
) -> None:
    """Compiles a model for `fit`; the default loss is the summed cross-entropy of tokens."""
    model.compile(
        optimizer=make_optimizer(settings, max_steps),
        # The weights of `fit_batch` turn this sum into a mean.
        loss=loss or SequenceCrossEntropy(settings.training.label_smoothing, "sum"),
        # On CPUs, the compilation of each shape by XLA takes longer than it saves.
        jit_compile=False if backend.name() == "tensorflow" else "auto",
        # `SkippingAdam` already scales the loss.
        auto_scale_loss=False,
    )
    model.optimizer.build(model.trainable_variables)


def freeze(model: keras.Model, patterns: str | Sequence[str] | None) -> list[str]:
    """Excludes weights from training, and returns their paths. Call it before `compile`.

    A pattern is a weight path, or its beginning up to a slash, with the wildcards `*` and `?`:
    `"embedding"`, `"encoder_*"`, `"*/bias"`. Raises InputError if a pattern matches no weight, or
    if all weights are frozen.
    """
    names = named_weights(model)
    frozen: dict[str, None] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns or []:
        matches = fnmatch.filter(names, pattern) + fnmatch.filter(names, f"{pattern}/*")
        if not matches:
            parts = ", ".join(dict.fromkeys(name.split("/")[0] for name in names))
            raise InputError(
                f"training.freeze: received {pattern!r}, expected a pattern of weight names, such "
                f"as {next(iter(names))!r}, whose first parts are: {parts}"
            )
        frozen.update(dict.fromkeys(matches))
    for name in frozen:
        names[name].trainable = False
    if not model.trainable_weights:
        raise InputError("training.freeze: all weights are frozen, nothing is left to train")
    return list(frozen)
