"""How a model is compiled for training, from its settings."""

from typing import Any

import keras

from keras_seq import backend
from keras_seq.losses.sequence_cross_entropy import SequenceCrossEntropy
from keras_seq.schedules.learning_rates import InverseSquareRoot, noam
from keras_seq.settings import Settings
from keras_seq.training.skipping_adam import SkippingAdam


def make_optimizer(settings: Settings) -> keras.optimizers.Optimizer:
    """Adam with the schedule, clipping and moving average that settings name.

    Args:
        settings: Those of a run.

    Returns:
        A Keras optimizer.
    """
    training = settings.training
    rate: Any = training.learning_rate
    if training.schedule == "inverse_sqrt":
        rate = InverseSquareRoot(training.learning_rate, training.warmup_steps)
    elif training.schedule == "noam":
        rate = noam(training.learning_rate, settings.model.output_width, training.warmup_steps)
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
        # Its variables are stored under this; a second one would be called adam_1 by itself.
        name="adam",
    )


def compile_model(model: keras.Model, settings: Settings, loss: Any = None) -> None:
    """Compiles a model for `fit`.

    Args:
        model: What the run's `Objective` gave.
        settings: Those of a run.
        loss: That of the objective; by default that of tokens, summed.
    """
    model.compile(
        optimizer=make_optimizer(settings),
        # The weights that `fit_batch` gives make a mean of it.
        loss=loss or SequenceCrossEntropy(settings.training.label_smoothing, "sum"),
        # XLA on a CPU compiles each shape for longer than it saves.
        jit_compile=False if backend.name() == "tensorflow" else "auto",
        # Ours scales the loss itself, where it has to.
        auto_scale_loss=False,
    )
    model.optimizer.build(model.trainable_variables)
