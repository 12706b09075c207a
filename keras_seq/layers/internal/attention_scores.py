"""Scores and weights of attention with one head."""

from typing import Any

from keras import activations, ops

from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.scaled_dot_product import NEG_INF

# Shape letters: B batch, T query steps, S value steps, U units.


def tanh(inputs: Any) -> Any:
    """tanh in the dtype of its inputs; Keras' tanh returns float32 for float64 on JAX."""
    return ops.cast(ops.tanh(inputs), inputs.dtype)


def additive_scores(query: Any, key: Any, vector: Any, pair: Any = None) -> Any:
    """vector . tanh(query + key + pair) for each query step and value step: `(B, T, S)`.

    `query` `(B, T, U)` and `key` `(B, S, U)` are projected; `pair` is `(B, T, S, U)`.
    """
    # Not by indexing with None: the gradient of a slice is a copy at each step of a loop.
    hidden = ops.expand_dims(query, 2) + ops.expand_dims(key, 1)  # (B, T, S, U)
    if pair is not None:
        hidden = hidden + pair
    return ops.tensordot(tanh(hidden), vector, axes=1)


def masked_softmax(scores: Any, mask: Any = None) -> Any:
    """Softmax of `(B, T, S)` over the real steps, computed in float32 or float64.

    The result is exactly 0 on steps where `mask` `(B, S)` is False, and all 0 if no step is real.
    """
    scores = at_least_float32(scores)
    if mask is None:
        return activations.softmax(scores, axis=-1)
    mask = ops.expand_dims(mask, 1)  # (B, 1, S)
    weights = activations.softmax(ops.where(mask, scores, NEG_INF), axis=-1)
    return ops.where(mask, weights, 0.0)
