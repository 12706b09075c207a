"""Sums and maxima over all sequences of tags, as plain functions."""

import keras
from keras import ops

from keras_seq.layers.internal.step_loop import run_steps

# Shape letters: B batch, T steps, N tags.

# Large enough that exp underflows to exactly 0, small enough for float32 sums.
IMPOSSIBLE = -1e9


def chain_scores(inputs, mask, transitions, start, reduce):
    """What the tags up to each step score, reduced over all but the last of them.

        a[1, j] = start[j] + x[1, j]
        a[t, j] = reduce over i of (a[t - 1, i] + A[i, j]) + x[t, j]

    over the real steps alone, wherever they stand.

    Args:
        inputs: Float tensor `(B, T, N)`, x.
        mask: Bool tensor `(B, T)`.
        transitions: Tensor `(N, N)`, A[from, to].
        start: Tensor `(N,)`.
        reduce: `ops.logsumexp` or `ops.max`.

    Returns:
        Tensor `(B, T, N)`, at a masked step that of the step before; and the
        last of them, `(B, N)`.
    """

    def step(current, states):
        (scores,) = states
        potentials, is_real, is_first = ops.split(current, [tags, tags + 1], axis=-1)
        following = reduce(ops.expand_dims(scores, 2) + transitions, axis=1)  # (B, N)
        following = ops.where(is_first > 0, start, following) + potentials
        scores = ops.where(is_real > 0, following, scores)
        return scores, [scores]

    tags = inputs.shape[-1]
    is_real = ops.expand_dims(ops.cast(mask, inputs.dtype), 2)
    is_first = ops.cast(ops.cumsum(is_real, axis=1) <= 1, inputs.dtype)
    flags = ops.concatenate([inputs, is_real, is_first], axis=-1)
    states = [ops.zeros_like(inputs[:, 0])]
    scores, (last,) = run_steps(step, flags, states, _policy(inputs))
    return scores, last


def best_tags(scores, mask, transitions, end):
    """The tags of the highest score, from the last step back.

    Args:
        scores: Tensor `(B, T, N)`, `chain_scores` of maxima.
        mask: Bool tensor `(B, T)`.
        transitions: Tensor `(N, N)`.
        end: Tensor `(N,)`.

    Returns:
        Int32 tensor `(B, T)`, 0 at masked steps.
    """

    def step(current, states):
        (following,) = states
        scores, is_real, is_last = ops.split(current, [tags, tags + 1], axis=-1)
        onward = ops.take(incoming, ops.cast(following[:, 0], "int32"), axis=0)  # (B, N)
        scores = scores + ops.where(is_last > 0, end, onward)
        best = ops.cast(ops.argmax(scores, axis=-1, keepdims=True), scores.dtype)
        best = ops.where(is_real > 0, best, following)
        return best, [best]

    tags = scores.shape[-1]
    incoming = ops.transpose(transitions)
    is_real = ops.flip(ops.expand_dims(ops.cast(mask, scores.dtype), 2), axis=1)
    is_last = ops.cast(ops.cumsum(is_real, axis=1) <= 1, scores.dtype)
    flags = ops.concatenate([ops.flip(scores, axis=1), is_real, is_last], axis=-1)
    # A tag is a float in the loop, as all that Keras' loop carries: exact, for they are few.
    states = [ops.zeros_like(scores[:, 0, :1])]
    backwards, _ = run_steps(step, flags, states, _policy(scores))
    best = ops.cast(ops.flip(backwards, axis=1)[:, :, 0], "int32")
    return ops.where(mask, best, ops.zeros((), "int32"))


def _policy(tensor):
    return keras.DTypePolicy(keras.backend.standardize_dtype(tensor.dtype))
