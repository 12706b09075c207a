"""How a model is taught, where it is not by the true words alone."""

import keras
from keras import ops

from keras_seq.training.rates import scheduled_sampling_rate

# Shape letters: B batch, S source steps, T target steps, V vocabulary.


class Teaching(keras.Model):
    """A model as it is trained with scheduled sampling or guided alignment; internal.

    Scheduled sampling in its parallel form: a first pass over the true target,
    without dropout and without gradient, says what the model itself would put at
    each place; in the second pass a share of the target's tokens are replaced by
    these. The form of Bengio et al. takes T passes, one after the other; here the
    words before the one replaced are the true ones.

    Weights are those of `model`. What it has besides is one seed generator, whose
    count of draws is the number of batches so far, so that the rate goes on where it
    was when the generator is restored.

    Args:
        model: A model of `keras_seq.models`.
        rate: Function of the update that gives the share of tokens to replace, or None.
        micro_batches: Batches that make an update.
        seed: Integer, of what is replaced.
        layer: Which of the decoder's layers gives its attention as a second output, or
            None for logits alone.

    Reference:
        Mihaylova and Martins, "Scheduled Sampling for Transformers", 2019,
        https://arxiv.org/abs/1906.07651; Duckworth et al., "Parallel Scheduled
        Sampling", 2019, https://arxiv.org/abs/1906.04331
    """

    def __init__(self, model, rate=None, micro_batches=1, seed=0, layer=None):
        super().__init__(name="teaching")
        self.plain = model
        self.taught = model if layer is None else model.with_attention(layer)
        self.rate = rate
        self.micro_batches = micro_batches
        if rate is not None:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, inputs, training=None):
        if training and self.rate is not None:
            inputs = {**inputs, "target": self._replace(inputs)}
        return self.taught(inputs, training=training)

    def _replace(self, inputs):
        target = inputs["target"]  # (B, T)
        batches = ops.cast(self.seed_generator.state.value[1], "int32")
        share = self.rate(batches // self.micro_batches)
        logits = self.plain(inputs, training=False)  # (B, T, V)
        likeliest = ops.cast(ops.argmax(ops.stop_gradient(logits), axis=-1), target.dtype)
        # Step t says what comes at t + 1.
        shifted = ops.concatenate([target[:, :1], likeliest[:, :-1]], axis=1)
        drawn = keras.random.uniform(ops.shape(target), seed=self.seed_generator)
        places = ops.logical_and(ops.less(drawn, share), ops.not_equal(target, 0))
        # The start stays, and padding is no word to go on from.
        places = ops.logical_and(places, ops.arange(ops.shape(target)[1]) > 0)
        return ops.where(ops.logical_and(places, ops.not_equal(shifted, 0)), shifted, target)


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
    rate = layer = None
    if training.scheduled_sampling != "none":
        rate = scheduled_sampling_rate(
            training.scheduled_sampling,
            training.scheduled_sampling_rate,
            training.scheduled_sampling_steps,
        )
    if training.guided_alignment:
        layer = training.guided_alignment_layer
    if rate is None and layer is None:
        return model
    return Teaching(model, rate, training.micro_batches, settings.seed, layer)
