"""Learned relative positions."""

import keras
from keras import ops

from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.positions.attention_position import AttentionPosition

# Shape letters: B batch, H heads, T steps, D size of a head's keys, D' of its values, R distance,
# K beam, P slots of a cache.


@keras.saving.register_keras_serializable(package="keras_seq")
class RelativePosition(AttentionPosition):
    """A learned vector for each distance, added to the keys and to the values.

        scores[t, s] = q[t] . (k[s] + a_K[r])
        context[t]   = sum over s of weights[t, s] * (v[s] + a_V[r])
        r            = s - t, cut to -R .. R

    As the `position` of `MultiHeadSelfAttention`; its heads share the vectors.
    What the distances add is computed with one product for each distance and
    not for each pair of steps, so nothing of the size `(T, T, D)` is made.

    Called by itself the layer gives the first part, q[t] . a_K[r]; its values
    then have the size of its keys.

    Shapes: B batch, H heads, T steps, D size of a head's keys, D' of its
    values, R the largest distance.

    Args:
        max_distance: Positive integer R; what is farther counts as R.
        values: Whether the values get vectors, too, or the keys alone.

    Call arguments:
        inputs: Float tensor `(B, H, T, D)`, queries, scaled as for the scores.

    Returns:
        Tensor `(B, H, T, T)` in the compute dtype.

    Masks: none; scores have no padding, weights have.

    Raises:
        ValueError: At construction if `max_distance` is not a positive
            integer; at build if `inputs` has not four axes, or D is unknown.

    Example:

    >>> position = RelativePosition(max_distance=2)
    >>> tuple(position(keras.ops.ones((1, 2, 5, 8))).shape)
    (1, 2, 5, 5)
    >>> tuple(position.key_vectors.shape)
    (5, 8)

    Reference:
        Shaw, Uszkoreit and Vaswani, "Self-Attention with Relative Position
        Representations", 2018, section 3, https://arxiv.org/abs/1803.02155;
        the shift of rows is that of Huang et al., "Music Transformer", 2018,
        section 3.4, https://arxiv.org/abs/1809.04281
    """

    learns = True

    def __init__(self, max_distance, values=True, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(max_distance, int) or max_distance < 1:
            raise ValueError(
                f"`max_distance` must be a positive integer, received {max_distance!r}."
            )
        self.max_distance = max_distance
        self.values = values
        self._value_size = None

    def build(self, input_shape):
        if len(input_shape) != 4 or input_shape[-1] is None:
            raise ValueError(
                "`inputs` must have the axes (batch, heads, steps, features), the features known, "
                f"received the shape {tuple(input_shape)}: "
                "an attention takes the layer as its `position`."
            )
        count, key_size = 2 * self.max_distance + 1, input_shape[-1]
        self.key_vectors = self.add_weight(
            name="key_vectors", shape=(count, key_size), initializer="glorot_uniform"
        )
        if self.values:
            self.value_vectors = self.add_weight(
                name="value_vectors",
                shape=(count, self._value_size or key_size),
                initializer="glorot_uniform",
            )

    def build_heads(self, num_heads, key_size, value_size):
        self._value_size = value_size
        super().build_heads(num_heads, key_size, value_size)

    def call(self, inputs):
        return ops.cast(self.bias(inputs, ops.shape(inputs)[2]), self.compute_dtype)

    def bias(self, query, steps):
        vectors = self._at_distances(self.key_vectors, query, steps)
        scores = ops.matmul(query, ops.transpose(vectors))  # (B, H, T, 2 T + 1)
        return at_least_float32(by_key(scores, steps))

    def read(self, weights):
        if not self.values:
            return None
        steps = ops.shape(weights)[-1]
        vectors = self._at_distances(self.value_vectors, weights, steps)
        return ops.matmul(by_distance(weights, steps), vectors)

    def step_bias(self, query, ago):
        vectors = self._of_the_past(self.key_vectors, query)
        scores = ops.matmul(query, ops.transpose(vectors))  # (B, H, K, R + 1)
        _, beam, slots = ops.shape(ago)
        batch, heads = ops.shape(query)[0], query.shape[1]
        index = ops.broadcast_to(self._index(ago)[:, None], (batch, heads, beam, slots))
        return at_least_float32(ops.take_along_axis(scores, index, axis=-1))

    def step_read(self, weights, ago):
        if not self.values:
            return None
        # What the slots of a distance weigh together; the beam before the heads, which share it.
        of_distance = ops.one_hot(self._index(ago), self.max_distance + 1, dtype=weights.dtype)
        weights = ops.matmul(ops.transpose(weights, (0, 2, 1, 3)), of_distance)
        context = ops.matmul(weights, self._of_the_past(self.value_vectors, weights))
        return ops.transpose(context, (0, 2, 1, 3))

    def _at_distances(self, vectors, like, steps):
        """The vectors of distances -T .. T."""
        cut = ops.clip(ops.arange(2 * steps + 1) - steps, -self.max_distance, self.max_distance)
        return ops.cast(ops.take(vectors, cut + self.max_distance, axis=0), like.dtype)

    def _of_the_past(self, vectors, like):
        """The vectors of distances -R .. 0."""
        return ops.cast(vectors[: self.max_distance + 1], like.dtype)

    def _index(self, ago):
        """Which of those is that of a slot."""
        return self.max_distance - ops.minimum(ago, self.max_distance)

    def get_config(self):
        return {
            **super().get_config(),
            "max_distance": self.max_distance,
            "values": self.values,
        }


def by_key(tensor, steps):
    """`(B, H, T, 2 T + 1)` by distances -T .. T -> `(B, H, T, T)` by keys.

    What query t has for key s lies, laid out flat, at t (2 T + 1) + s - t + T, which is
    t (2 T) + s + T: after the first T numbers, in rows of 2 T, it is number s of row t.
    """
    batch, heads = ops.shape(tensor)[0], tensor.shape[1]
    flat = ops.reshape(tensor, (batch, heads, steps * (2 * steps + 1)))
    return ops.reshape(flat[:, :, steps:], (batch, heads, steps, 2 * steps))[..., :steps]


def by_distance(tensor, steps):
    """The way back from `by_key`, `(B, H, T, T)` -> `(B, H, T, 2 T + 1)`; 0 where no key is."""
    batch, heads = ops.shape(tensor)[0], tensor.shape[1]
    longer = ops.pad(tensor, [[0, 0], [0, 0], [0, 0], [0, steps]])
    flat = ops.reshape(longer, (batch, heads, 2 * steps * steps))
    flat = ops.pad(flat, [[0, 0], [0, 0], [steps, 0]])
    return ops.reshape(flat, (batch, heads, steps, 2 * steps + 1))
