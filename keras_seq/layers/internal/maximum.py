"""The largest number of each unit over the real steps."""

from keras import ops

from keras_seq.layers.internal.precision import at_least_float32

# Shape letters: B batch, S steps, D units.


def masked_maximum(inputs, mask):
    """The maximum over steps, with a gradient to one step of each unit.

    Args:
        inputs: Float tensor `(B, S, D)`.
        mask: Bool tensor `(B, S)`.

    Returns:
        Tensor `(B, D)`; 0 where no step is real.
    """
    # Below what half and single precision hold of any use, and finite.
    compared = at_least_float32(inputs)
    compared = ops.where(mask[..., None], compared, ops.cast(-1e38, compared.dtype))
    best = ops.argmax(compared, axis=1, keepdims=True)
    is_best = ops.equal(ops.arange(ops.shape(inputs)[1])[:, None], best)  # (B, S, D)
    # Chosen by its place: `ops.max` looks for its equal in the gradient, and finds none where a
    # compiler has computed the inputs anew and rounded them otherwise.
    chosen = ops.logical_and(is_best, mask[..., None])
    return ops.sum(ops.where(chosen, inputs, ops.zeros((), inputs.dtype)), axis=1)
