"""Scheduled sampling: a decoder that learns to go on from its own words."""

import keras
from keras import ops

# Shape letters: B batch, S source steps, T target steps, V vocabulary.


class ScheduledSampling(keras.Model):
    """A model that is trained on its own words in the place of some of the true ones.

    In training the decoder sees the true words, in use its own. With the share `rate`
    of the target's tokens replaced by what the model itself would put there it learns
    to go on from its errors.

    This is the parallel form: a first pass over the true target, without dropout and
    without gradient, says what the model would put at each place; in the second
    pass a share of the tokens are replaced by these. The form of Bengio et al. takes T
    passes, one after the other; here the words before the one replaced are the true ones.

    Compile and fit this in the place of `model`, whose weights it has, and save, evaluate and
    decode with `model`. Outside training the two give the same.

    Shapes: B batch, S source steps, T target steps, V vocabulary.

    Args:
        model: One of `keras_seq.models`, or another of the same inputs and outputs.
        rate: The share to replace, in [0, 1]: a float, a function of the update, such as
            `rates.scheduled_sampling_rate` gives, or a `keras.Variable` that is not
            trainable, for `callbacks.FollowSchedule` to set. The variable becomes a weight of
            this model.
        micro_batches: Positive integer, batches that make an update.
        seed: Integer, of what is replaced.
        attention_layer: Which of the decoder's layers gives its attention as a second output, or
            None for logits alone.

    Call arguments:
        inputs: Dict of `source`, integer ids `(B, S)`, and `target`, integer ids `(B, T)`, the
            start token and then the true words.
        training: Whether words are replaced.

    Returns:
        Float32 logits `(B, T, V)`; with `attention_layer` a dict of `logits` and
        `attention` `(B, T, S)`.

    Masks: id 0 is padding. The first token of a target and padding are never replaced, and
    nothing is replaced by padding.

    Raises:
        TypeError: If `rate` is none of those.
        ValueError: If `rate` is a number outside [0, 1], or a variable that is trainable.

    Example:

    >>> from keras_seq.models import Transformer
    >>> model = Transformer(20, 30, 1, 1, units=8, feedforward_units=16, num_heads=2)
    >>> share = keras.Variable(0.0, trainable=False)
    >>> sampled = ScheduledSampling(model, share)
    >>> ids = {"source": ops.ones((2, 3), "int32"), "target": ops.ones((2, 4), "int32")}
    >>> tuple(sampled(ids, training=True).shape)
    (2, 4, 30)

    Reference:
        Bengio et al., "Scheduled Sampling for Sequence Prediction with Recurrent Neural
        Networks", 2015, https://arxiv.org/abs/1506.03099; in parallel: Mihaylova and
        Martins, "Scheduled Sampling for Transformers", 2019,
        https://arxiv.org/abs/1906.07651; Duckworth et al., "Parallel Scheduled
        Sampling", 2019, https://arxiv.org/abs/1906.04331
    """

    def __init__(self, model, rate, micro_batches=1, seed=0, attention_layer=None):
        super().__init__(name="teaching")
        self.plain = model
        self.taught = model if attention_layer is None else model.with_attention(attention_layer)
        self.rate = _checked(rate)
        self.micro_batches = micro_batches
        # Its count of draws is the number of batches so far, so that the rate goes on where it was
        # when the generator is restored.
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, inputs, training=None):
        if training:
            # On JAX `fit` without compilation gives numpy arrays, which go not with tensors.
            inputs = {name: ops.convert_to_tensor(array) for name, array in inputs.items()}
            inputs["target"] = self._replace(inputs)
        return self.taught(inputs, training=training)

    def _replace(self, inputs):
        target = inputs["target"]  # (B, T)
        share = self._share()
        logits = self.plain(inputs, training=False)  # (B, T, V)
        likeliest = ops.cast(ops.argmax(ops.stop_gradient(logits), axis=-1), target.dtype)
        # Step t says what comes at t + 1.
        shifted = ops.concatenate([target[:, :1], likeliest[:, :-1]], axis=1)
        drawn = keras.random.uniform(ops.shape(target), seed=self.seed_generator)
        places = ops.logical_and(ops.less(drawn, share), ops.not_equal(target, 0))
        # The start stays, and padding is no word to go on from.
        places = ops.logical_and(places, ops.arange(ops.shape(target)[1]) > 0)
        return ops.where(ops.logical_and(places, ops.not_equal(shifted, 0)), shifted, target)

    def _share(self):
        if not callable(self.rate):
            return ops.convert_to_tensor(self.rate)
        batches = ops.cast(self.seed_generator.state.value[1], "int32")
        return self.rate(batches // self.micro_batches)


def _checked(rate):
    if isinstance(rate, keras.Variable):
        if rate.trainable:
            raise ValueError("`rate` is a trainable variable: make it with `trainable=False`.")
    elif not callable(rate):
        if not isinstance(rate, (int, float)):
            raise TypeError(
                "`rate` must be a number, a function of the update or a keras.Variable, received "
                f"{rate!r}."
            )
        if not 0 <= rate <= 1:
            raise ValueError(f"`rate` must be from 0 to 1, received {rate!r}.")
    return rate
