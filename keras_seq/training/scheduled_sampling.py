"""Scheduled sampling: training on the predictions of the model."""

import keras
from keras import ops

from keras_seq import backend

# Shape letters: B batch, S source steps, T target steps, V vocabulary.


class ScheduledSampling(keras.Model):
    """Training wrapper that replaces some target tokens with predictions of the model.

    With teacher forcing, the decoder sees the true tokens in training but its own predictions in
    use. If a share `rate` of the target tokens is replaced with predictions, the model learns to
    recover from its errors.

    This is the parallel form. A first pass over the true target, without dropout and gradient,
    predicts each token. In the second pass, a random share of the tokens is replaced with these
    predictions. The form of Bengio et al. needs T sequential passes; here, each prediction follows
    the true tokens before it.

    Compile and fit this model instead of `model`. The two share their weights; save, evaluate and
    decode with `model`. Outside training, both compute the same outputs.

    Shapes: B batch, S source steps, T target steps, V vocabulary.

    Args:
        model: A model of `keras_seq.models`, or a model with the same inputs and outputs.
        rate: Share of the tokens to replace, in [0, 1]: a float, a function of the number of
            updates, such as `rates.scheduled_sampling_rate` returns, or a non-trainable
            `keras.Variable` that `callbacks.FollowSchedule` sets. The variable becomes a weight of
            this model.
        micro_batches: Positive integer, batches per update.
        seed: Integer, random seed of the replacements.
        attention_layer: Index of the decoder layer whose attention is a second output, or None.

    Call arguments:
        inputs: Dict of `source`, integer ids `(B, S)`, and `target`, integer ids `(B, T)`: the
            start token followed by the true tokens.
        training: Whether to replace tokens.

    Returns:
        Float32 logits `(B, T, V)`; with `attention_layer` a dict of `logits` and
        `attention` `(B, T, S)`.

    Masks: id 0 is padding. The first token of a target and padding are never replaced, and tokens
    are never replaced with padding.

    Raises:
        TypeError: If `rate` has a different type.
        ValueError: If `rate` is a number outside [0, 1] or a trainable variable.

    Example:

    >>> from keras_seq.models import Transformer
    >>> model = Transformer(20, 30, 1, 1, units=8, feedforward_units=16, num_heads=2)
    >>> share = keras.Variable(0.0, trainable=False)
    >>> sampled = ScheduledSampling(model, share)
    >>> ids = {"source": ops.ones((2, 3), "int32"), "target": ops.ones((2, 4), "int32")}
    >>> tuple(sampled(ids, training=True).shape)
    (2, 4, 30)

    Reference:
        Bengio et al., "Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks",
        2015, https://arxiv.org/abs/1506.03099; in parallel: Mihaylova and Martins, "Scheduled
        Sampling for Transformers", 2019, https://arxiv.org/abs/1906.07651; Duckworth et al.,
        "Parallel Scheduled Sampling", 2019, https://arxiv.org/abs/1906.04331
    """

    def __init__(self, model, rate, micro_batches=1, seed=0, attention_layer=None):
        super().__init__(name="training_wrapper")
        self.plain = model
        self.guided = model if attention_layer is None else model.with_attention(attention_layer)
        self.rate = _checked(rate)
        self.micro_batches = micro_batches
        # The counter of the generator equals the number of batches so far. Restoring the generator
        # therefore also resumes the schedule of the sampling rate.
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, inputs, training=None):
        if training:
            # On JAX, `fit` without compilation passes numpy arrays.
            inputs = {name: ops.convert_to_tensor(array) for name, array in inputs.items()}
            inputs["target"] = self._replace(inputs)
        return self.guided(inputs, training=training)

    def _replace(self, inputs):
        target = inputs["target"]  # (B, T)
        rate = self._current_rate()
        with backend.without_gradients():
            logits = self.plain(inputs, training=False)  # (B, T, V)
        best = ops.cast(ops.argmax(ops.stop_gradient(logits), axis=-1), target.dtype)
        # Step t predicts the token at step t + 1.
        predicted = ops.concatenate([target[:, :1], best[:, :-1]], axis=1)
        random = keras.random.uniform(backend.shape(target), seed=self.seed_generator)
        replace = ops.logical_and(ops.less(random, rate), ops.not_equal(target, 0))
        replace = ops.logical_and(replace, ops.arange(backend.shape(target)[1]) > 0)
        replace = ops.logical_and(replace, ops.not_equal(predicted, 0))
        return ops.where(replace, predicted, target)

    def _current_rate(self):
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
