"""Training wrappers: models that are compiled and trained instead of the run's model."""

import keras
from keras import ops

from keras_seq.models import EnsembleClassifier, EnsembleSeq2Seq
from keras_seq.schedules.rates import scheduled_sampling_rate
from keras_seq.text import InputError
from keras_seq.training.minimum_risk import MinimumRisk
from keras_seq.training.r_drop import TwoPasses
from keras_seq.training.scheduled_sampling import ScheduledSampling


class GuidedModel(keras.Model):
    """A model with the attention of a decoder layer as a second output; internal.

    The wrapper keeps the order of the weights, on which checkpoints of the optimizer depend.
    `model.with_attention` has a different order.
    """

    def __init__(self, model, layer):
        super().__init__(name="training_wrapper")
        self.plain = model
        self.guided = model.with_attention(layer)
        self.built = True

    def call(self, inputs, training=None):
        return self.guided(inputs, training=training)


class StackedMembers(keras.Model):
    """An ensemble of M members that returns the logits of all members; internal.

    The logits are `(B, T, M, V)` of token sequences, and `(B, M, C)` of the classes of texts.
    """

    def __init__(self, model):
        super().__init__(name="training_wrapper")
        self.plain = model
        self.built = True

    def call(self, inputs, training=None):
        logits = [member(inputs, training=training) for member in self.plain.members]
        return ops.stack(logits, axis=-2)


def training_model(model, settings):
    """Returns the model for `fit`: `model` itself, or a wrapper with its weights.

    The outputs are logits, or with guided alignment `{"logits", "attention"}`. Raises ValueError if
    the model lacks attention, or the layer of the guided attention.
    """
    training = settings.training
    is_ensemble = isinstance(model, EnsembleSeq2Seq | EnsembleClassifier)
    members = model.members if is_ensemble else [model]
    if training.r_drop:
        return TwoPasses(model, members)
    if training.minimum_risk:
        return MinimumRisk(
            model,
            members,
            StackedMembers(model) if is_ensemble else model,
            num_samples=training.minimum_risk_samples,
            # `max_target_length` does not count the end token.
            max_length=min(settings.data.max_target_length + 1, settings.search.max_length),
            seed=settings.seed,
        )
    if is_ensemble:
        return StackedMembers(model)
    layer = training.guided_alignment_layer if training.guided_alignment else None
    if layer is not None and not hasattr(model, "with_attention"):
        raise InputError(
            f"training.guided_alignment: expected 0, because {type(model).__name__} has no "
            "attention (no method `with_attention`)"
        )
    if training.scheduled_sampling != "none":
        limits = (training.scheduled_sampling_rate, training.scheduled_sampling_steps)
        rate = scheduled_sampling_rate(training.scheduled_sampling, *limits)
        return ScheduledSampling(model, rate, training.micro_batches, settings.seed, layer)
    return model if layer is None else GuidedModel(model, layer)
