"""What the one-headed attentions share, as plain functions."""

import keras
from keras import activations, ops

from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.scaled_dot_product import MASKED

# Shape letters: B batch, T query steps, S value steps, U units.

VECTORS = ("batch", "features")
STEPS = ("batch", "steps", "features")


def tanh(inputs):
    """tanh in the dtype of its inputs, which on JAX Keras' own is not for float64."""
    return ops.cast(ops.tanh(inputs), inputs.dtype)


def additive_scores(query, key, vector, pair=None):
    """vector . tanh(query + key + pair) for every pair of steps.

    Args:
        query: Tensor `(B, T, U)`, projected.
        key: Tensor `(B, S, U)`, projected.
        vector: Tensor `(U,)`.
        pair: Optional tensor `(B, T, S, U)`, what belongs to one pair alone.

    Returns:
        Tensor `(B, T, S)`.
    """
    # Not by slices with None: their gradient costs a copy in a decoder's loop.
    hidden = ops.expand_dims(query, 2) + ops.expand_dims(key, 1)  # (B, T, S, U)
    if pair is not None:
        hidden = hidden + pair
    return ops.tensordot(tanh(hidden), vector, axes=1)


def masked_softmax(scores, mask=None):
    """Softmax over the real steps, computed in float32 at least.

    Args:
        scores: Tensor `(B, T, S)`.
        mask: Optional bool tensor `(B, S)`, True = real.

    Returns:
        Tensor `(B, T, S)`: exactly 0 on masked steps, and all 0 where no step
        is real.
    """
    scores = at_least_float32(scores)
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
        check_axes(name, shape, STEPS)
        if shape[-1] is None:
            raise ValueError(
                f"The feature axis of `{name}` must be known, "
                f"received a {name} of shape {tuple(shape)}."
            )
    return query_shape[-1], value_shape[-1]


def check_axes(name, shape, *allowed):
    """Raises ValueError unless `shape` has as many axes as one of `allowed`."""
    if len(shape) not in map(len, allowed):
        expected = " or ".join(f"({', '.join(axes)})" for axes in allowed)
        raise ValueError(
            f"`{name}` must have the axes {expected}, received the shape {tuple(shape)}: "
            "a single step or feature is an axis of size 1, which `keras.ops.expand_dims` adds."
        )


def check_tensor(name, tensor, features, *allowed):
    """Raises ValueError unless `tensor` holds floats, `features` of them on its last axis."""
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    if "float" not in dtype:
        raise ValueError(
            f"`{name}` must hold floats, received {dtype} in the shape {tuple(tensor.shape)}: "
            "ids become vectors by an embedding first."
        )
    check_axes(name, tensor.shape, *allowed)
    if tensor.shape[-1] not in (None, features):
        raise ValueError(
            f"`{name}` must have {features} features, as when this layer was built, received "
            f"{tensor.shape[-1]} in the shape {tuple(tensor.shape)}: "
            "another width needs a layer of its own."
        )


def check_same_batch(name, tensor, other_name, other):
    """Raises ValueError where two tensors have different numbers of rows."""
    sizes = {tensor.shape[0], other.shape[0]} - {None}
    if len(sizes) > 1:
        raise ValueError(
            f"`{name}` and `{other_name}` must have equally many rows, received the shapes "
            f"{tuple(tensor.shape)} and {tuple(other.shape)}: repeat the rows of one of them."
        )


def check_mask(name, mask, tensor):
    """Raises ValueError unless `mask`, where there is one, is bool and of the steps of `tensor`."""
    if mask is None:
        return
    dtype = keras.backend.standardize_dtype(mask.dtype)
    if dtype != "bool":
        raise ValueError(
            f"`{name}` must be bool, True where a step is real, received {dtype}: "
            "compare it first, as in `mask != 0`."
        )
    steps = tuple(tensor.shape[:2])
    fits = len(mask.shape) == 2 and all(
        None in sizes or len(set(sizes)) == 1 for sizes in zip(mask.shape, steps, strict=True)
    )
    if not fits:
        raise ValueError(
            f"`{name}` must have the shape (batch, steps) of what it masks, {steps}, "
            f"received {tuple(mask.shape)}: one truth value for each step."
        )


def check_call(features, query, value, query_mask=None, value_mask=None):
    """Raises ValueError unless an attention of these `features` can be called so.

    Args:
        features: Integers, the widths of query and value it was built for.
        query: Tensor `(B, T, D_q)`.
        value: Tensor `(B, S, D_v)`.
        query_mask: Optional tensor `(B, T)`.
        value_mask: Optional tensor `(B, S)`.
    """
    check_tensor("query", query, features[0], STEPS)
    check_tensor("value", value, features[1], STEPS)
    check_same_batch("query", query, "value", value)
    check_mask("query_mask", query_mask, query)
    check_mask("value_mask", value_mask, value)
