"""Scaled dot-product attention as plain functions that layers share."""

import keras
from keras import ops

from keras_seq.layers.internal.custom_gradient import custom_gradient
from keras_seq.layers.internal.precision import at_least_float32

# Shape letters: B batch, H heads, T query steps, S key steps, D size of a head.

# Large enough that exp underflows to exactly 0, small enough for float32 sums.
MASKED = -1e9


def padding_bias(mask):
    """Turns a `(B, S)` mask, True = real, into a float32 bias `(B, 1, 1, S)`."""
    return ops.where(mask, 0.0, MASKED)[:, None, None, :]


def band_bias(steps, causal=False, window=None):
    """Float32 bias `(1, 1, T, T)` that hides the future, and what is `window` steps away or more.

    None where neither hides anything.
    """
    if not causal and window is None:
        return None
    index = ops.arange(steps)
    ahead = index[None, :] - index[:, None]  # (T, T)
    shown = ahead <= 0 if causal else ahead < window
    if window is not None:
        shown = ops.logical_and(shown, ahead > -window)
    return ops.where(shown, 0.0, MASKED)[None, None]


def join_biases(biases):
    """What any of some biases hides is hidden; None where there is none of them."""
    joined = None
    for bias in biases:
        if bias is not None:
            joined = bias if joined is None else ops.minimum(joined, bias)
    return joined


def query_has_keys(bias):
    """Float32, the bias' shape with one key: 0 for queries that see no key at all, else 1."""
    return ops.cast(ops.max(bias, axis=-1, keepdims=True) > MASKED / 2, "float32")


def attention_weights(query, key, bias, real_rows=None):
    """softmax(query . key + bias), computed in float32 at least.

    Args:
        query: Tensor `(B, H, T, D)`, already scaled by D ** -0.5.
        key: Tensor `(B, H, S, D)`.
        bias: Float32 tensor that broadcasts to `(B, H, T, S)`, or None.
        real_rows: Float32 tensor that broadcasts likewise and is 0 for rows
            without any real key, or None where there is no such row.

    Returns:
        Tensor `(B, H, T, S)`, float64 where the query is, else float32.
    """
    scores = at_least_float32(ops.matmul(query, ops.swapaxes(key, -1, -2)))  # (B, H, T, S)
    if bias is not None:
        # Not by operators: TensorFlow has none for a float64 and a float32.
        scores = ops.add(scores, bias)
    if scores.shape[-1] == 1:
        weights = ops.ones_like(scores)  # Keras warns of a softmax over one number
    else:
        weights = ops.softmax(scores, axis=-1)
    return weights if real_rows is None else ops.multiply(weights, real_rows)


def attention_context(query, key, value, bias=None, real_rows=None):
    """The values under the weights of `attention_weights`, which are given to nobody.

    Its gradient goes over tensors `(B, H, T, S)` half as often as what would
    be derived from the softmax. `bias` gets no gradient.

    Args:
        query: Tensor `(B, H, T, D)`, already scaled by D ** -0.5.
        key: Tensor `(B, H, S, D)`.
        value: Tensor `(B, H, S, D')`.
        bias: Float32 tensor that broadcasts to `(B, H, T, S)`, or None.
        real_rows: As `attention_weights` has it, of one number for each row.

    Returns:
        Tensor `(B, H, T, D')`.
    """
    if bias is None:
        context = _context(query, key, value)
    else:
        context = _context_with_bias(query, key, value, bias)
    return context if real_rows is None else context * ops.cast(real_rows, context.dtype)


def _weigh(query, key, value, bias=None):
    """The context, and the gradients by query, key and value."""
    weights = attention_weights(query, key, bias)
    halved = ops.cast(weights, value.dtype)
    context = ops.matmul(halved, value)

    def gradients(upstream):
        # The sum over s of weights * by_weights is the same as that over D' of upstream * context,
        # which is of a size that does not grow with S.
        upstream = ops.cast(upstream, value.dtype)
        by_weights = at_least_float32(ops.matmul(upstream, ops.swapaxes(value, -1, -2)))
        mean = ops.sum(
            at_least_float32(upstream) * at_least_float32(context), axis=-1, keepdims=True
        )
        by_scores = ops.cast(weights * (by_weights - mean), query.dtype)  # (B, H, T, S)
        return (
            ops.matmul(by_scores, key),
            ops.matmul(ops.swapaxes(by_scores, -1, -2), query),
            ops.matmul(ops.swapaxes(halved, -1, -2), upstream),
        )

    return context, gradients


@custom_gradient
def _context(query, key, value):
    return _weigh(query, key, value)


@custom_gradient
def _context_with_bias(query, key, value, bias):
    context, gradients = _weigh(query, key, value, bias)

    def gradient(upstream):
        return *gradients(upstream), ops.zeros_like(bias)

    return context, gradient


def has_fused_attention(query, value):
    """Whether Keras has one program for all of attention that is faster than ours.

    That is cuDNN's, by JAX on a GPU, in half precision alone, for keys and
    values of one size. What Keras has on a CPU is slower on either backend, and
    on a TPU it takes the mask of the first row of a batch for that of all.
    """
    return (
        keras.backend.backend() == "jax"
        and keras.backend.standardize_dtype(query.dtype) in ("bfloat16", "float16")
        and query.shape[-1] == value.shape[-1]
        and keras.config.is_flash_attention_enabled() is not False
        and any(device.startswith("gpu") for device in keras.distribution.list_devices())
    )


def fused_context(query, key, value, bias=None, real_rows=None):
    """As `attention_context`, by `keras.ops.dot_product_attention`.

    `bias` may hide keys and do nothing else.
    """
    mask = None
    if bias is not None:
        mask = bias > MASKED / 2
        if real_rows is not None:
            # A query that sees nothing sees all here, lest it come to 0 / 0; it is put out below.
            mask = ops.logical_or(mask, real_rows < 0.5)
        batch, _, steps, _ = ops.shape(query)
        mask = ops.broadcast_to(mask, (batch, 1, steps, ops.shape(key)[2]))
    context = ops.dot_product_attention(
        *(ops.transpose(part, (0, 2, 1, 3)) for part in (query, key, value)), mask=mask, scale=1.0
    )
    context = ops.transpose(context, (0, 2, 1, 3))
    return context if real_rows is None else context * ops.cast(real_rows, context.dtype)


def zero_padding(inputs, mask):
    """Replaces masked steps by 0, so that not even NaN there reaches a sum or a gradient."""
    if mask is None:
        return inputs
    return ops.where(mask[..., None], inputs, ops.zeros((), inputs.dtype))
