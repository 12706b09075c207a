"""Scaled dot-product attention and its biases."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.precision import at_least_float32

# Shape letters: B batch, H heads, T query steps, S key steps, D size of a head.

# exp(NEG_INF) is exactly 0, and sums of several NEG_INF are finite in float32.
NEG_INF = -1e9


def padding_bias(mask: Any) -> Any:
    """Turns a mask `(B, S)`, True where a step is real, into a float32 bias `(B, 1, 1, S)`."""
    return ops.where(mask, 0.0, NEG_INF)[:, None, None, :]


def pair_bias(mask: Any) -> Any:
    """Turns a mask `(B, T, S)`, True where attention is allowed, into a bias `(B, 1, T, S)`."""
    return ops.where(mask, 0.0, NEG_INF)[:, None]


def band_bias(steps: Any, causal: bool = False, window: int | None = None) -> Any:
    """Returns a float32 bias `(1, 1, T, T)` that hides later steps and steps `window` or more away.

    None if it would hide nothing.
    """
    if not causal and window is None:
        return None
    index = ops.arange(steps)
    ahead = index[None, :] - index[:, None]  # (T, T)
    visible = ahead <= 0 if causal else ahead < window
    if window is not None:
        visible = ops.logical_and(visible, ahead > -window)
    return ops.where(visible, 0.0, NEG_INF)[None, None]


def join_biases(biases: list[Any]) -> Any:
    """Joins biases into one that hides a key if any bias does. None entries hide no keys."""
    joined = None
    for bias in biases:
        if bias is not None:
            joined = bias if joined is None else ops.minimum(joined, bias)
    return joined


def query_has_keys(bias: Any) -> Any:
    """Returns float32 in the shape of `bias` with S = 1: 1 if a query sees any key, else 0."""
    return ops.cast(ops.max(bias, axis=-1, keepdims=True) > NEG_INF / 2, "float32")


def attention_weights(query: Any, key: Any, bias: Any, has_keys: Any = None) -> Any:
    """softmax(query . key + bias), computed in float32 or float64: `(B, H, T, S)`.

    `query` `(B, H, T, D)` is already scaled by D ** -0.5. `bias` and `has_keys` are float32 and
    broadcast to the result. `has_keys` is 0 for queries that see no key, and None if all do.
    """
    scores = at_least_float32(ops.matmul(query, ops.swapaxes(key, -1, -2)))  # (B, H, T, S)
    if bias is not None:
        # `+` cannot add float32 to float64 on TensorFlow.
        scores = ops.add(scores, bias)
    if scores.shape[-1] == 1:
        weights = ops.ones_like(scores)  # Keras warns about a softmax over one number.
    else:
        weights = ops.softmax(scores, axis=-1)
    return weights if has_keys is None else ops.multiply(weights, has_keys)


def has_fused_attention(query: Any, value: Any) -> bool:
    """Returns True if `fused_context` is faster than a product with `attention_weights`.

    This holds for cuDNN's attention: on JAX with a GPU, in half precision, for keys and values of
    one size. Keras' operation is slower on a CPU, and wrong on a TPU, where it applies the mask of
    the first row of a batch to all rows.
    """
    return (
        keras.backend.backend() == "jax"
        and keras.backend.standardize_dtype(query.dtype) in ("bfloat16", "float16")
        and query.shape[-1] == value.shape[-1]
        and keras.config.is_flash_attention_enabled() is not False
        and any(device.startswith("gpu") for device in keras.distribution.list_devices())
    )


def fused_context(query: Any, key: Any, value: Any, bias: Any = None, has_keys: Any = None) -> Any:
    """Multiplies `attention_weights` by `value` `(B, H, S, D)`, with the fused attention of Keras.

    `bias` may hide keys, but not change their scores.
    """
    mask = None
    if bias is not None:
        mask = bias > NEG_INF / 2
        if has_keys is not None:
            # A query without keys would compute 0 / 0, so it sees all keys until its context is
            # multiplied by 0 below.
            mask = ops.logical_or(mask, has_keys < 0.5)
        batch, _, steps, _ = backend.shape(query)
        mask = ops.broadcast_to(mask, (batch, 1, steps, backend.shape(key)[2]))
    context = ops.dot_product_attention(
        *(ops.transpose(part, (0, 2, 1, 3)) for part in (query, key, value)), mask=mask, scale=1.0
    )
    context = ops.transpose(context, (0, 2, 1, 3))
    return context if has_keys is None else context * ops.cast(has_keys, context.dtype)


def zero_padding(inputs: Any, mask: Any) -> Any:
    """Sets masked steps to 0, so that not even NaN in them reaches a sum or a gradient."""
    if mask is None:
        return inputs
    return ops.where(mask[..., None], inputs, ops.zeros((), inputs.dtype))
