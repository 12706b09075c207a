"""Sums and maxima over all tag sequences of a linear chain."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.step_loop import run_steps

# Shape letters: B batch, T steps, N tags.


def chain_scores(
    inputs: Any, mask: Any, transitions: Any, start: Any, reduce: Callable[..., Any]
) -> tuple[Any, Any]:
    """Returns scores of the tag sequences up to each step, reduced over all tags but the last.

        a[1, j] = start[j] + x[1, j] a[t, j] = reduce over i of (a[t - 1, i] + A[i, j]) + x[t, j]

    Masked steps are skipped. `inputs` `(B, T, N)` is x, `transitions` is A[from, to], and `reduce`
    is `ops.logsumexp` or `ops.max`. Returns scores `(B, T, N)`, where masked steps repeat the
    previous scores, and the last scores `(B, N)`.
    """

    def step(current: Any, states: Any) -> Any:
        (scores,) = states
        potentials, is_real, is_first = ops.split(current, [tags, tags + 1], axis=-1)
        new_scores = reduce(ops.expand_dims(scores, 2) + transitions, axis=1)  # (B, N)
        new_scores = ops.where(is_first > 0, start, new_scores) + potentials
        scores = ops.where(is_real > 0, new_scores, scores)
        return scores, [scores]

    tags = inputs.shape[-1]
    is_real = ops.expand_dims(ops.cast(mask, inputs.dtype), 2)
    is_first = ops.cast(ops.cumsum(is_real, axis=1) <= 1, inputs.dtype)
    flags = ops.concatenate([inputs, is_real, is_first], axis=-1)
    states = [ops.zeros_like(inputs[:, 0])]
    scores, (last,) = run_steps(step, flags, states, _policy(inputs))
    return scores, last


def best_tags(scores: Any, mask: Any, transitions: Any, end: Any) -> Any:
    """Returns the tag sequence with the highest score, traced back from the last step.

    `scores` are `chain_scores` reduced by the maximum. Returns int32 `(B, T)`, 0 at masked steps.
    """

    def step(current: Any, states: Any) -> Any:
        (next_tag,) = states
        scores, is_real, is_last = ops.split(current, [tags, tags + 1], axis=-1)
        to_next = ops.take(incoming, ops.cast(next_tag[:, 0], "int32"), axis=0)  # (B, N)
        scores = scores + ops.where(is_last > 0, end, to_next)
        best = ops.cast(backend.argmax(scores, axis=-1)[:, None], scores.dtype)
        best = ops.where(is_real > 0, best, next_tag)
        return best, [best]

    tags = scores.shape[-1]
    incoming = ops.transpose(transitions)
    is_real = ops.flip(ops.expand_dims(ops.cast(mask, scores.dtype), 2), axis=1)
    is_last = ops.cast(ops.cumsum(is_real, axis=1) <= 1, scores.dtype)
    flags = ops.concatenate([ops.flip(scores, axis=1), is_real, is_last], axis=-1)
    # The states of a Keras loop are floats, which represent tag ids exactly.
    states = [ops.zeros_like(scores[:, 0, :1])]
    reversed_tags, _ = run_steps(step, flags, states, _policy(scores))
    best = ops.cast(ops.flip(reversed_tags, axis=1)[:, :, 0], "int32")
    return ops.where(mask, best, ops.zeros((), "int32"))


def _policy(tensor: Any) -> keras.DTypePolicy:
    return keras.DTypePolicy(keras.backend.standardize_dtype(tensor.dtype))
