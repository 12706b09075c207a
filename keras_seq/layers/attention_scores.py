"""What the one-headed attentions share, as plain functions."""

import keras
from keras import activations, ops

from keras_seq.layers.scaled_dot_product import MASKED

# Shape letters: B batch, T query steps, S value steps, U units.


def tanh(inputs):
    """tanh in the dtype of its inputs, which on JAX Keras' own is not for float64."""
    return ops.cast(ops.tanh(inputs), inputs.dtype)


def additive_scores(query, key, vector):
    """vector . tanh(query + key) for every pair of steps.

    Args:
        query: Tensor `(B, T, U)`, projected.
        key: Tensor `(B, S, U)`, projected.
        vector: Tensor `(U,)`.

    Returns:
        Tensor `(B, T, S)`.
    """
    # Not by slices with None: their gradient costs a copy in a decoder's loop.
    hidden = tanh(ops.expand_dims(query, 2) + ops.expand_dims(key, 1))  # (B, T, S, U)
    return ops.tensordot(hidden, vector, axes=1)


def masked_softmax(scores, mask=None):
    """Softmax over the real steps, computed in float32 at least.

    Args:
        scores: Tensor `(B, T, S)`.
        mask: Optional bool tensor `(B, S)`, True = real.

    Returns:
        Tensor `(B, T, S)`: exactly 0 on masked steps, and all 0 where no step
        is real.
    """
    if keras.backend.standardize_dtype(scores.dtype) != "float64":
        # Half precision loses the small weights.
        scores = ops.cast(scores, "float32")
    if mask is None:
        return activations.softmax(scores, axis=-1)
    mask = ops.expand_dims(mask, 1)  # (B, 1, S)
    weights = activations.softmax(ops.where(mask, scores, MASKED), axis=-1)
    return ops.where(mask, weights, 0.0)


def attend_to(scores, value, value_mask=None, noise=None):
    """Context and weights from scores.

    Args:
        scores: Tensor `(B, T, S)`.
        value: Tensor `(B, S, D)`, 0 on masked steps.
        value_mask: Optional bool tensor `(B, S)`.
        noise: Optional tensor `(B, T, S)` that multiplies the weights.

    Returns:
        context: Tensor `(B, T, D)`, sum over s of weights[b, t, s] * value[b, s].
        weights: Tensor `(B, T, S)`.
    """
    # Rounded once, when all of the softmax is done: the product below multiplies halves anyway, and
    # in a decoder's loop the weights ride on its outputs.
    weights = ops.cast(masked_softmax(scores, value_mask), value.dtype)
    if noise is not None:
        weights = weights * ops.cast(noise, value.dtype)
    return ops.matmul(weights, value), weights


def draw_noise(dropout_layer, steps, value, training):
    """The dropout of weights `(B, T, S)`, drawn before a loop needs it.

    Random numbers inside a loop would have to carry their generator's state
    through it.

    Args:
        dropout_layer: A `keras.layers.Dropout`.
        steps: Integer or scalar tensor T.
        value: Tensor `(B, S, D)`, for its shape.
        training: Whether dropout is applied.

    Returns:
        Tensor `(B, T, S)` of 0 and 1 / (1 - rate), or None where nothing is
        dropped.
    """
    if not training or not dropout_layer.rate:
        return None
    batch, source_steps = ops.shape(value)[0], ops.shape(value)[1]
    ones = ops.ones((batch, steps, source_steps), dtype=value.dtype)
    return dropout_layer(ones, training=training)


def check_dropout(dropout):
    """Raises ValueError unless `dropout` is in [0, 1)."""
    if not 0 <= dropout < 1:
        raise ValueError(f"`dropout` must be in [0, 1), received {dropout!r}.")


def check_features(query_shape, value_shape):
    """The feature counts of query and value; ValueError where one is unknown."""
    for name, shape in (("query", query_shape), ("value", value_shape)):
        if shape[-1] is None:
            raise ValueError(
                f"The feature axis of `{name}` must be known, "
                f"received a {name} of shape {tuple(shape)}."
            )
    return query_shape[-1], value_shape[-1]
