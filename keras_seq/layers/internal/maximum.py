"""Maximum over the real steps."""

from typing import Any

from keras import ops

from keras_seq.layers.internal.precision import at_least_float32

# Shape letters: B batch, S steps, D units.


def masked_maximum(inputs: Any, mask: Any) -> Any:
    """The maximum `(B, D)` of each unit over real steps, with a gradient to a single step.

    It is 0 if no step is real.
    """
    # A finite number below all others that occur.
    candidates = at_least_float32(inputs)
    candidates = ops.where(mask[..., None], candidates, ops.cast(-1e38, candidates.dtype))
    best = ops.argmax(candidates, axis=1, keepdims=True)
    is_best = ops.equal(ops.arange(ops.shape(inputs)[1])[:, None], best)  # (B, S, D)
    # By index: the gradient of `ops.max` searches for equal numbers, and finds none if a compiler
    # recomputes the inputs with other rounding.
    selected = ops.logical_and(is_best, mask[..., None])
    return ops.sum(ops.where(selected, inputs, ops.zeros((), inputs.dtype)), axis=1)
