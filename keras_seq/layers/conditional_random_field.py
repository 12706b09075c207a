"""Linear-chain conditional random field."""

import keras
from keras import ops

from keras_seq.layers.internal.linear_chain import IMPOSSIBLE, best_tags, chain_scores
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.scaled_dot_product import zero_padding

# Shape letters: B batch, T steps, N tags.


@keras.saving.register_keras_serializable(package="keras_seq")
class ConditionalRandomField(keras.layers.Layer):
    """Tags a sequence as a whole: each tag depends on the tag before it.

        score(x, y) = start[y_1] + end[y_T] + sum over t of x[t, y_t]
                      + sum over t > 1 of A[y_{t-1}, y_t]
        log P(y|x)  = score(x, y) - log sum over all y' of exp(score(x, y'))

    The inputs x are potentials, one number for each tag, from a
    `keras.layers.Dense(N)` without activation. The call finds the most likely
    tags by the algorithm of Viterbi; given the true tags, it adds their mean
    negative log-likelihood to the loss. Sums over all sequences are taken by
    the forward algorithm, in float32 at least.

    Who comes from TensorFlow Addons: `tfa.layers.CRF(n)` is `Dense(n)` and
    this layer; `tfa.text.crf_log_likelihood` is `log_likelihood`,
    `crf_log_norm` is `log_partition`, `crf_decode` is the call,
    `crf_multitag_sequence_score` less `crf_log_norm` is `log_likelihood` of
    bool tags, and what took `sequence_length` takes a mask.

    Shapes: B batch, T steps, N tags.

    Args:
        use_boundary: Whether there are `start` and `end`. Defaults to True.

    Call arguments:
        inputs: Float tensor `(B, T, N)`, the potentials.
        tags: Optional true tags, as of `log_likelihood`.
        inputs_mask: Optional bool tensor `(B, T)`, True where a step is real.
            Filled in by Keras from `inputs` when not given.

    Returns:
        Int32 tensor `(B, T)`, the most likely tags, 0 at masked steps. With
        `tags`, a pair: these, and the log-likelihood `(B,)` of the true ones.

    Masks: the mask of `inputs` passes through. A masked step is left out,
    wherever it stands, as if its neighbours followed each other; what it
    holds, NaN included, reaches neither outputs nor gradients.

    Raises:
        ValueError: If the inputs are not of shape `(B, T, N)` with a known
            number of tags, or tags or mask do not fit them.

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
        Lafferty, McCallum and Pereira, "Conditional Random Fields", ICML
        2001, section 3; Sutton and McCallum, "An Introduction to Conditional
        Random Fields", 2012, section 4.1, https://arxiv.org/abs/1011.4088
    """

    def __init__(self, use_boundary=True, **kwargs):
        super().__init__(**kwargs)
        self.use_boundary = use_boundary
        self.supports_masking = True

    def build(self, inputs_shape, tags_shape=None):
        if len(inputs_shape) != 3 or inputs_shape[-1] is None:
            raise ValueError(
                "The inputs must be potentials of shape (batch, steps, tags) with a known number "
                f"of tags, received {tuple(inputs_shape)}."
            )
        tags = inputs_shape[-1]
        # In full precision: half of it would round what sums over many steps.
        self.transitions = self.add_weight(
            name="transitions",
            shape=(tags, tags),
            initializer="glorot_uniform",
            autocast=False,
        )
        if self.use_boundary:
            self.start, self.end = (
                self.add_weight(name=name, shape=(tags,), initializer="zeros", autocast=False)
                for name in ("start", "end")
            )

    def call(self, inputs, tags=None, inputs_mask=None):
        potentials, mask = self._prepared(inputs, inputs_mask)
        transitions, start, end = self._weights(potentials)
        scores, _ = chain_scores(potentials, mask, transitions, start, ops.max)
        decoded = best_tags(scores, mask, transitions, end)
        if tags is None:
            return decoded
        likelihood = self.log_likelihood(inputs, tags, inputs_mask)
        self.add_loss(-ops.mean(likelihood))
        return decoded, likelihood

    def log_likelihood(self, inputs, tags, mask=None):
        """log P of the tags.

        Args:
            inputs: Float tensor `(B, T, N)`.
            tags: Integer tensor `(B, T)` from 0 to N - 1; or a bool tensor
                `(B, T, N)` of the tags that a step may have, whose sequences
                are summed over.
            mask: Optional bool tensor `(B, T)`.

        Returns:
            Tensor `(B,)`, float32 at least; 0 where no step is real.
        """
        potentials, mask = self._prepared(inputs, mask)
        allowed = self._allowed(tags, potentials)
        constrained = ops.where(allowed, potentials, IMPOSSIBLE)
        # Both sums in one loop.
        partition = self._log_partition(
            ops.concatenate([constrained, potentials], axis=0),
            ops.concatenate([mask, mask], axis=0),
        )
        of_tags, of_all = ops.split(partition, 2, axis=0)
        return of_tags - of_all

    def log_partition(self, inputs, mask=None):
        """log of the sum of exp(score) over all sequences of tags.

        Args:
            inputs: Float tensor `(B, T, N)`.
            mask: Optional bool tensor `(B, T)`.

        Returns:
            Tensor `(B,)`, float32 at least; 0 where no step is real.
        """
        return self._log_partition(*self._prepared(inputs, mask))

    def marginals(self, inputs, mask=None):
        """P(y_t = j | x) of each step and tag.

        Args:
            inputs: Float tensor `(B, T, N)`.
            mask: Optional bool tensor `(B, T)`.

        Returns:
            Tensor `(B, T, N)`, float32 at least; 0 at masked steps.
        """
        potentials, mask = self._prepared(inputs, mask)
        transitions, start, end = self._weights(potentials)
        forward, _ = chain_scores(potentials, mask, transitions, start, ops.logsumexp)
        # The same from the other end: of the reversed sequence, along reversed transitions.
        backward, _ = chain_scores(
            ops.flip(potentials, axis=1),
            ops.flip(mask, axis=1),
            ops.transpose(transitions),
            end,
            ops.logsumexp,
        )
        both = forward + ops.flip(backward, axis=1) - potentials
        return zero_padding(ops.softmax(both, axis=-1), mask)

    def _log_partition(self, potentials, mask):
        transitions, start, end = self._weights(potentials)
        _, last = chain_scores(potentials, mask, transitions, start, ops.logsumexp)
        partition = ops.logsumexp(last + end, axis=-1)
        return ops.where(ops.any(mask, axis=1), partition, ops.zeros((), partition.dtype))

    def _weights(self, potentials):
        transitions = ops.cast(self.transitions, potentials.dtype)
        if not self.use_boundary:
            nothing = ops.zeros_like(transitions[0])
            return transitions, nothing, nothing
        return (
            transitions,
            ops.cast(self.start, potentials.dtype),
            ops.cast(self.end, potentials.dtype),
        )

    def _prepared(self, inputs, mask):
        inputs = ops.convert_to_tensor(inputs)
        tags = self.transitions.shape[0]
        if len(inputs.shape) != 3 or inputs.shape[-1] != tags:
            raise ValueError(
                f"The inputs must be of shape (batch, steps, {tags}), "
                f"received {tuple(inputs.shape)}."
            )
        if mask is None:
            mask = ops.ones_like(inputs[:, :, 0], dtype="bool")
        mask = ops.cast(mask, "bool")
        if not _fits(mask.shape, inputs.shape[:2]):
            raise ValueError(
                f"The mask must be of shape (batch, steps), received {tuple(mask.shape)} "
                f"for inputs of shape {tuple(inputs.shape)}."
            )
        return at_least_float32(zero_padding(inputs, mask)), mask

    def _allowed(self, tags, potentials):
        tags = ops.convert_to_tensor(tags)
        dtype = keras.backend.standardize_dtype(tags.dtype)
        if dtype == "bool" and _fits(tags.shape, potentials.shape):
            return tags
        if "int" not in dtype or not _fits(tags.shape, potentials.shape[:2]):
            raise ValueError(
                "The tags must be integers of shape (batch, steps), or bools of shape "
                f"(batch, steps, {potentials.shape[-1]}), received {dtype} of shape "
                f"{tuple(tags.shape)} for inputs of shape {tuple(potentials.shape)}."
            )
        places = ops.arange(potentials.shape[-1], dtype=dtype)
        return ops.equal(ops.expand_dims(tags, 2), places)

    def compute_mask(self, inputs, mask=None):
        return mask

    def get_config(self):
        return {**super().get_config(), "use_boundary": self.use_boundary}


def _fits(shape, expected):
    """Whether two shapes can be equal, of which some sizes are not known."""
    return len(shape) == len(expected) and all(
        None in pair or pair[0] == pair[1] for pair in zip(shape, expected, strict=True)
    )
