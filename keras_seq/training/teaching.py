"""What is compiled and trained, where that is not the run's model itself."""

import keras
from keras import ops

from keras_seq.models import EnsembleSeq2Seq
from keras_seq.schedules.rates import scheduled_sampling_rate
from keras_seq.training.scheduled_sampling import ScheduledSampling


class GuidedModel(keras.Model):
    """A model whose decoder's attention is a second output, with its weights; internal.

    `model.with_attention` alone would have them in another order, by which checkpoints
    of the optimizer go.

    Args:
        model: A model of `keras_seq.models`.
        layer: Which of the decoder's layers.
    """

    def __init__(self, model, layer):
        super().__init__(name="teaching")
        self.plain = model
        self.guided = model.with_attention(layer)
        self.built = True

    def call(self, inputs, training=None):
        return self.guided(inputs, training=training)


class StackedMembers(keras.Model):
    """An ensemble whose output is the logits of each member, with its weights; internal.

    Args:
        model: An `EnsembleSeq2Seq` of M members.

    Returns:
        Logits `(B, T, M, V)`.
    """

    def __init__(self, model):
        super().__init__(name="teaching")
        self.plain = model
        self.built = True

    def call(self, inputs, training=None):
        logits = [member(inputs, training=training) for member in self.plain.members]
        return ops.stack(logits, axis=2)


def training_model(model, settings):
    """The model that `fit` is given: `model` itself, or one around it with its weights.

    Args:
        model: A model of `keras_seq.models`.
        settings: Those of a run.

    Returns:
        A Keras model of `{"source", "target"}`, whose outputs are logits, or, with
        guided alignment, `{"logits", "attention"}`.

    Raises:
        ValueError: If the model has no such layer to guide.
    """
    training = settings.training
    if isinstance(model, EnsembleSeq2Seq):
        return StackedMembers(model)
    layer = training.guided_alignment_layer if training.guided_alignment else None
    if training.scheduled_sampling != "none":
        rate = scheduled_sampling_rate(
            training.scheduled_sampling,
            training.scheduled_sampling_rate,
            training.scheduled_sampling_steps,
        )
        return ScheduledSampling(model, rate, training.micro_batches, settings.seed, layer)
    return model if layer is None else GuidedModel(model, layer)
