"""Learned relative positions."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.checks import check_positive
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.positions.attention_position import AttentionPosition


@keras.saving.register_keras_serializable(package="keras_seq")
class RelativePosition(AttentionPosition):
    """Adds a learned vector for each relative position to keys and values.

        scores[t, s] = q[t] . (k[s] + a_K[r])
        context[t]   = sum over s of weights[t, s] * (v[s] + a_V[r])
        r            = s - t, clipped to -R .. R

    Use it as the `position` of `MultiHeadSelfAttention`, whose heads share the vectors. One product
    for each relative position, instead of one for each pair of steps, avoids tensors of shape
    `(T, T, D)`. Called directly, the layer returns the key part q[t] . a_K[r], and its values have
    the size of its keys.

    Shapes: B batch, H heads, T steps, D size of a head's keys, D' of its values, R the largest
    distance.

    Args:
        max_distance: Positive integer R. Larger distances count as R.
        values: Whether values have vectors as well as keys.

    Call arguments:
        inputs: Float tensor `(B, H, T, D)`, queries scaled for the scores.

    Outputs and masks are those of `LinearBiases`.

    Raises:
        ValueError: At construction if `max_distance` is not a positive integer. At build if
            `inputs` does not have four axes or D is unknown.

    Example:

    >>> position = RelativePosition(max_distance=2)
    >>> tuple(position(keras.ops.ones((1, 2, 5, 8))).shape)
    (1, 2, 5, 5)
    >>> tuple(position.key_vectors.shape)
    (5, 8)

    Reference:
        Shaw, Uszkoreit and Vaswani, "Self-Attention with Relative Position Representations", 2018,
        section 3, https://arxiv.org/abs/1803.02155; the shift of rows: Huang et al., "Music
        Transformer", 2018, section 3.4, https://arxiv.org/abs/1809.04281
    """

    def __init__(self, max_distance: int, values: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_positive(max_distance=max_distance)
        self.max_distance = max_distance
        self.values = values
        self._value_size: int | None = None

    def build(self, input_shape: Any) -> None:
        if len(input_shape) != 4 or input_shape[-1] is None:
            raise ValueError(
                "`inputs` must have the axes (batch, heads, steps, features) and a known number of "
                f"features, received the shape {tuple(input_shape)}: "
                "pass the layer to an attention as its `position`."
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

    def build_heads(self, num_heads: int, key_size: int, value_size: int) -> None:
        self._value_size = value_size
        super().build_heads(num_heads, key_size, value_size)

    def call(self, inputs: Any) -> Any:
        return ops.cast(self.bias(inputs, backend.shape(inputs)[2]), self.compute_dtype)

    def bias(self, query: Any, steps: Any) -> Any:
        vectors = self._vectors_by_distance(self.key_vectors, query, steps)
        scores = ops.matmul(query, ops.transpose(vectors))  # (B, H, T, 2 T + 1)
        return at_least_float32(by_key(scores, steps))

    def context_bias(self, weights: Any) -> Any:
        if not self.values:
            return None
        steps = backend.shape(weights)[-1]
        vectors = self._vectors_by_distance(self.value_vectors, weights, steps)
        return ops.matmul(by_distance(weights, steps), vectors)

    def step_bias(self, query: Any, distance: Any) -> Any:
        vectors = self._past_vectors(self.key_vectors, query)
        scores = ops.matmul(query, ops.transpose(vectors))  # (B, H, K, R + 1)
        _, beam, slots = backend.shape(distance)
        batch, heads = backend.shape(query)[0], query.shape[1]
        index = ops.broadcast_to(self._past_index(distance)[:, None], (batch, heads, beam, slots))
        return at_least_float32(ops.take_along_axis(scores, index, axis=-1))

    def step_context_bias(self, weights: Any, distance: Any) -> Any:
        if not self.values:
            return None
        # Sums weights by distance. The beam axis precedes the heads, because they share `one_hot`.
        one_hot = ops.one_hot(
            self._past_index(distance), self.max_distance + 1, dtype=weights.dtype
        )
        weights = ops.matmul(ops.transpose(weights, (0, 2, 1, 3)), one_hot)
        context = ops.matmul(weights, self._past_vectors(self.value_vectors, weights))
        return ops.transpose(context, (0, 2, 1, 3))

    def _vectors_by_distance(self, vectors: Any, like: Any, steps: Any) -> Any:
        """Returns the vectors of relative positions -T .. T."""
        index = ops.clip(ops.arange(2 * steps + 1) - steps, -self.max_distance, self.max_distance)
        return ops.cast(ops.take(vectors, index + self.max_distance, axis=0), like.dtype)

    def _past_vectors(self, vectors: Any, like: Any) -> Any:
        """Returns the vectors of relative positions -R .. 0."""
        return ops.cast(vectors[: self.max_distance + 1], like.dtype)

    def _past_index(self, distance: Any) -> Any:
        """Returns the row index in `_past_vectors` for each distance."""
        return self.max_distance - ops.minimum(distance, self.max_distance)


def by_key(tensor: Any, steps: Any) -> Any:
    """Converts `(B, H, T, 2 T + 1)` by relative position -T .. T to `(B, H, T, T)` by key.

    The entry of query t for key s has the flat index t (2 T + 1) + s - t + T = t (2 T) + s + T.
    After the first T entries, in rows of 2 T, it is entry s of row t.
    """
    batch, heads = backend.shape(tensor)[0], tensor.shape[1]
    flat = ops.reshape(tensor, (batch, heads, steps * (2 * steps + 1)))
    return ops.reshape(flat[:, :, steps:], (batch, heads, steps, 2 * steps))[..., :steps]


def by_distance(tensor: Any, steps: Any) -> Any:
    """Inverts `by_key`. Relative positions without a key get 0."""
    batch, heads = backend.shape(tensor)[0], tensor.shape[1]
    longer = ops.pad(tensor, [[0, 0], [0, 0], [0, 0], [0, steps]])
    flat = ops.reshape(longer, (batch, heads, 2 * steps * steps))
    flat = ops.pad(flat, [[0, 0], [0, 0], [steps, 0]])
    return ops.reshape(flat, (batch, heads, steps, 2 * steps + 1))
