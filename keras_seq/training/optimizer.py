"""Compiles a model as its settings say."""

from typing import Any

import keras

from keras_seq import backend
from keras_seq.losses.sequence_cross_entropy import SequenceCrossEntropy
from keras_seq.schedules.learning_rates import InverseSquareRoot, noam
from keras_seq.settings import Settings
from keras_seq.training.skipping_adam import SkippingAdam


def make_optimizer(settings: Settings) -> keras.optimizers.Optimizer:
    """Returns Adam with the schedule, clipping and moving average of the settings."""
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
        # Checkpoints contain this name. Keras would name a second optimizer differently.
        name="adam",
    )


def compile_model(model: keras.Model, settings: Settings, loss: Any = None) -> None:
    """Compiles a model for `fit`; the default loss is the summed cross-entropy of tokens."""
    model.compile(
        optimizer=make_optimizer(settings),
        # A sum, which the weights of `fit_batch` turn into a mean.
        loss=loss or SequenceCrossEntropy(settings.training.label_smoothing, "sum"),
        # On CPUs, the compilation of each shape by XLA takes longer than it saves.
        jit_compile=False if backend.name() == "tensorflow" else "auto",
        # SkippingAdam scales the loss.
        auto_scale_loss=False,
    )
    model.optimizer.build(model.trainable_variables)
