"""Linear-chain conditional random field."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.checks import check_mask, check_tensor, known_features, same_shape
from keras_seq.layers.internal.configured_layer import ConfiguredLayer
from keras_seq.layers.internal.linear_chain import best_tags, chain_scores
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.scaled_dot_product import NEG_INF, zero_padding

TAGGED = ("batch", "steps", "tags")


@keras.saving.register_keras_serializable(package="keras_seq")
class ConditionalRandomField(ConfiguredLayer):
    """Linear-chain conditional random field, which tags a sequence as a whole.

        score(x, y) = start[y_1] + end[y_T] + sum over t of x[t, y_t]
                      + sum over t > 1 of A[y_{t-1}, y_t]
        log P(y|x)  = score(x, y) - log sum over all y' of exp(score(x, y'))

    Use it as the last layer of a tagger whose neighboring tags depend on each other, as in named
    entity recognition. The inputs x are potentials, one number per tag, from a
    `keras.layers.Dense(N)` without activation. A call returns the most likely tags, by the Viterbi
    algorithm. With the true tags it also adds their mean negative log-likelihood to the loss, by
    the forward algorithm in float32 or more.

    For users of TensorFlow Addons: `tfa.layers.CRF(n)` is `Dense(n)` and this layer;
    `tfa.text.crf_log_likelihood` is `log_likelihood`; `crf_log_norm` is `log_partition`;
    `crf_decode` is the call; `crf_multitag_sequence_score` minus `crf_log_norm` is
    `log_likelihood` with bool tags. Masks replace `sequence_length`.

    Shapes: B batch, T steps, N tags.

    Args:
        use_boundary: Whether to learn `start` and `end`. Defaults to True.

    Call arguments:
        inputs: Float tensor `(B, T, N)`, the potentials.
        tags: Optional true tags, as for `log_likelihood`.
        inputs_mask: Optional bool tensor `(B, T)`, True at real steps; by default the Keras mask.

    Returns:
        Int32 tensor `(B, T)`, the most likely tags, 0 at masked steps. With `tags`, the pair of
        this tensor and the log-likelihood `(B,)` of the true tags.

    Masks: the mask of `inputs` passes through. Masked steps may be anywhere and are skipped, as if
    their neighbors were adjacent. Their content, even NaN, affects neither outputs nor gradients.

    Raises:
        ValueError: If the inputs are not of shape `(B, T, N)` with known N, or tags or mask do not
            fit them.

    Example:

    >>> field = ConditionalRandomField()
    >>> potentials = keras.ops.array([[[0.0, 2.0], [0.0, 1.0], [3.0, 0.0]]])
    >>> field.build((None, None, 2))
    >>> _ = field.transitions.assign([[0.0, 0.0], [0.0, -9.0]])  # 1 hardly follows 1
    >>> [int(tag) for tag in field(potentials)[0]]
    [1, 0, 0]
    >>> likelihood = field.log_likelihood(potentials, keras.ops.array([[1, 0, 0]]))
    >>> round(float(likelihood[0]), 3)
    -0.445

    Reference:
        Lafferty, McCallum and Pereira, "Conditional Random Fields", ICML 2001, section 3; Sutton
        and McCallum, "An Introduction to Conditional Random Fields", 2012, section 4.1,
        https://arxiv.org/abs/1011.4088
    """

    def __init__(self, use_boundary: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_boundary = use_boundary

    def build(self, inputs_shape: Any, tags_shape: Any = None) -> None:
        tags = known_features("inputs", inputs_shape, TAGGED)
        # No autocast, because errors of half precision add up over the steps.
        self.transitions = self.add_weight(
            name="transitions", shape=(tags, tags), initializer="glorot_uniform", autocast=False
        )
        if self.use_boundary:
            self.start, self.end = (
                self.add_weight(name=name, shape=(tags,), initializer="zeros", autocast=False)
                for name in ("start", "end")
            )

    def call(self, inputs: Any, tags: Any = None, inputs_mask: Any = None) -> Any:
        potentials, mask = self._prepared(inputs, inputs_mask)
        transitions, start, end = self._weights(potentials)
        scores, _ = chain_scores(potentials, mask, transitions, start, ops.max)
        decoded = best_tags(scores, mask, transitions, end)
        if tags is None:
            return decoded
        likelihood = self.log_likelihood(inputs, tags, inputs_mask)
        self.add_loss(-ops.mean(likelihood))
        return decoded, likelihood

    def log_likelihood(self, inputs: Any, tags: Any, mask: Any = None) -> Any:
        """Returns log P of the tags, `(B,)` in float32 or more; 0 for rows without real steps.

        `inputs` is float `(B, T, N)` and `mask` an optional bool `(B, T)`. `tags` are integers
        `(B, T)` from 0 to N - 1; or bools `(B, T, N)`, the allowed tags of each step, to sum over
        all allowed sequences.
        """
        potentials, mask = self._prepared(inputs, mask)
        allowed = self._allowed(tags, potentials)
        constrained = ops.where(allowed, potentials, NEG_INF)
        # A single loop computes `log_sum_of_tags` and `log_sum_of_all`.
        partition = self._log_partition(
            ops.concatenate([constrained, potentials], axis=0),
            ops.concatenate([mask, mask], axis=0),
        )
        log_sum_of_tags, log_sum_of_all = ops.split(partition, 2, axis=0)
        return log_sum_of_tags - log_sum_of_all

    def log_partition(self, inputs: Any, mask: Any = None) -> Any:
        """Returns log of the sum of exp(score) over all tag sequences, `(B,)`.

        Arguments and result are as for `log_likelihood`.
        """
        return self._log_partition(*self._prepared(inputs, mask))

    def marginals(self, inputs: Any, mask: Any = None) -> Any:
        """Returns P(y_t = j | x) of each step and tag, `(B, T, N)`, 0 at masked steps.

        Arguments and dtype are as for `log_likelihood`.
        """
        potentials, mask = self._prepared(inputs, mask)
        transitions, start, end = self._weights(potentials)
        forward, _ = chain_scores(potentials, mask, transitions, start, ops.logsumexp)
        # The backward algorithm is the forward algorithm on the reversed sequence.
        backward, _ = chain_scores(
            ops.flip(potentials, axis=1),
            ops.flip(mask, axis=1),
            ops.transpose(transitions),
            end,
            ops.logsumexp,
        )
        both = forward + ops.flip(backward, axis=1) - potentials
        return zero_padding(ops.softmax(both, axis=-1), mask)

    def _log_partition(self, potentials: Any, mask: Any) -> Any:
        transitions, start, end = self._weights(potentials)
        _, last = chain_scores(potentials, mask, transitions, start, ops.logsumexp)
        partition = ops.logsumexp(last + end, axis=-1)
        return ops.where(ops.any(mask, axis=1), partition, ops.zeros((), partition.dtype))

    def _weights(self, potentials: Any) -> tuple[Any, Any, Any]:
        transitions = ops.cast(self.transitions, potentials.dtype)
        if not self.use_boundary:
            zeros = ops.zeros_like(transitions[0])
            return transitions, zeros, zeros
        start, end = (ops.cast(weight, potentials.dtype) for weight in (self.start, self.end))
        return transitions, start, end

    def _prepared(self, inputs: Any, mask: Any) -> tuple[Any, Any]:
        inputs = ops.convert_to_tensor(inputs)
        check_tensor("inputs", inputs, self.transitions.shape[0], TAGGED)
        if mask is None:
            mask = ops.ones_like(inputs[:, :, 0], dtype="bool")
        mask = ops.cast(mask, "bool")
        check_mask("mask", mask, inputs)
        return at_least_float32(zero_padding(inputs, mask)), mask

    def _allowed(self, tags: Any, potentials: Any) -> Any:
        tags = ops.convert_to_tensor(tags)
        dtype = keras.backend.standardize_dtype(tags.dtype)
        if dtype == "bool" and same_shape(tags.shape, potentials.shape):
            return tags
        if "int" not in dtype or not same_shape(tags.shape, potentials.shape[:2]):
            raise ValueError(
                "The tags must be integers of shape (batch, steps), or bools of shape "
                f"(batch, steps, {potentials.shape[-1]}), received {dtype} of shape "
                f"{tuple(tags.shape)} for inputs of shape {tuple(potentials.shape)}."
            )
        all_tags = ops.arange(potentials.shape[-1], dtype=dtype)
        return ops.equal(ops.expand_dims(tags, 2), all_tags)
