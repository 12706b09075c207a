"""Output layer that generates tokens or copies them from the source."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.checks import (
    STEPS,
    check_axes,
    check_positive,
    check_tensor,
    known_features,
)
from keras_seq.layers.internal.weight_arguments import WeightArguments

# Added to probabilities before their logarithm, which is then at least -69.
_TINY = 1e-30


@keras.saving.register_keras_serializable(package="keras_seq")
class PointerGenerator(WeightArguments):
    """Mixture of generating a token and copying a source token by its attention weight.

        g = sigmoid(w h + b)
        P(v) = g softmax(logits)_v + (1 - g) sum over the s with source_s = v of attention_s

    Use it as the output layer of a decoder whose source and target share a vocabulary and many
    tokens, such as names, numbers, or the stem of an inflected word. The weights of source tokens
    outside the vocabulary, and what the weights lack to 1, are added to g.

    Shapes: B batch, T target steps or hypotheses, S source steps, U units, V vocabulary.

    Args:
        vocabulary_size: Positive integer V.
        use_bias: Whether to add b. Defaults to True.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer: Of w and b.
            Default to "glorot_uniform", "zeros" and none.

    Call arguments:
        inputs: Float tensor h `(B, T, U)`, the outputs of the decoder.
        logits: Float tensor `(B, T, V)`.
        attention: Float tensor `(B, T, S)`, weights that are 0 on padding and sum to 1.
        source: Integer ids `(B, S)` of the tokens to copy.

    Returns:
        Log-probabilities `(B, T, V)` in float32 under every dtype policy, which serve as logits.

    Masks: the output has the mask of `inputs`. `attention` is not masked again.

    Raises:
        ValueError: If `vocabulary_size` is not a positive integer, or an argument of the call has
            the wrong shape or dtype.

    Example:

    >>> layer = PointerGenerator(3)
    >>> log_probabilities = layer(keras.ops.zeros((1, 1, 2)), logits=keras.ops.zeros((1, 1, 3)),
    ...     attention=keras.ops.array([[[0.25, 0.75]]]), source=keras.ops.array([[1, 2]]))
    >>> [round(float(p), 3) for p in keras.ops.exp(log_probabilities)[0, 0]]
    [0.167, 0.292, 0.542]

    Reference:
        See, Liu and Manning, "Get To The Point: Summarization with Pointer-Generator Networks",
        2017, section 2.2, https://arxiv.org/abs/1704.04368
    """

    def __init__(self, vocabulary_size: int, **kwargs: Any) -> None:
        # Without autocast the logits keep their precision.
        super().__init__(autocast=False, **kwargs)
        check_positive(vocabulary_size=vocabulary_size)
        self.vocabulary_size = vocabulary_size

    def build(self, inputs_shape: Any, **shapes: Any) -> None:
        units = known_features("inputs", inputs_shape, STEPS)
        self._add_kernel("kernel", (units, 1))
        self._add_bias("bias", (1,))

    def call(self, inputs: Any, logits: Any, attention: Any, source: Any) -> Any:
        check_tensor("inputs", inputs, self.kernel.shape[0], STEPS)
        check_tensor("logits", logits, self.vocabulary_size, STEPS)
        check_axes("attention", attention.shape, STEPS)
        hidden, logits, attention, kernel = (
            ops.cast(x, "float32") for x in (inputs, logits, attention, self.kernel)
        )
        gate = ops.matmul(hidden, kernel)  # (B, T, 1)
        if self.bias is not None:
            gate = gate + ops.cast(self.bias, "float32")
        log_generates, log_copies = ops.log_sigmoid(gate), ops.log_sigmoid(-gate)
        copied = self._copied(attention, ops.cast(source, "int32"))
        missing = ops.maximum(1 - ops.sum(copied, axis=-1, keepdims=True), 0)
        log_generates = ops.logaddexp(log_generates, log_copies + ops.log(missing + _TINY))
        return ops.logaddexp(
            log_generates + ops.log_softmax(logits, axis=-1), log_copies + ops.log(copied + _TINY)
        )

    def _copied(self, attention: Any, source: Any) -> Any:
        """Returns the sum of the weights of each token of the vocabulary, `(B, T, V)`."""
        batch, steps, length = (backend.shape(attention)[axis] for axis in range(3))
        size = self.vocabulary_size
        inside = ops.logical_and(source >= 0, source < size)
        weights = ops.where(inside[:, None], attention, ops.zeros_like(attention))
        rows = ops.arange(batch * steps, dtype="int32")
        column = ops.where(inside, source, ops.zeros_like(source))[:, None]  # (B, 1, S)
        index = ops.reshape(rows * size, (batch, steps, 1)) + column
        summed = ops.segment_sum(
            ops.reshape(weights, (batch * steps * length,)),
            ops.reshape(index, (batch * steps * length,)),
            num_segments=batch * steps * size,
        )
        return ops.reshape(summed, (batch, steps, size))

    def compute_output_spec(
        self, inputs: Any, logits: Any, attention: Any, source: Any
    ) -> keras.KerasTensor:
        return keras.KerasTensor(logits.shape, dtype="float32")
