"""Hypotheses of a search: picked, merged with others that ended, and given as the result."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_seq.backend import gather

# Shape letters: B batch, K beam, J picked, N n-best, L steps.

# Stands for "no such hypothesis": below any real score, far from float32's limits.
NEG_INF = -1e30


class SearchResult(NamedTuple):
    """What a search found, best first.

    Attributes:
        tokens: Int32 `(B, N, L)`; the end token included, then 0.
        lengths: Int32 `(B, N)`; tokens with the end token; 0 where there are
            fewer than N hypotheses.
        scores: Float32 `(B, N)`; normalised log-probability.
        truncated: Bool `(B, N)`; True where the length limit came before the
            end token.
    """

    tokens: Any
    lengths: Any
    scores: Any
    truncated: Any


def reorder_state(state, parents):
    """Gathers every tensor of `state["beam"]` by parent; `state["shared"]` stays as it is."""
    beam = keras.tree.map_structure(lambda tensor: gather(tensor, parents), state["beam"])
    return {**state, "beam": beam}


def merge_finished(finished, leaving):
    """The N best of the finished hypotheses so far, `(B, N)`, and those that finish now, `(B, K)`.

    Both are dicts of `scores`, `tokens` and `lengths`.
    """
    joined = {key: ops.concatenate([finished[key], leaving[key]], axis=1) for key in finished}
    scores, index = ops.top_k(joined["scores"], finished["scores"].shape[1])
    index = ops.cast(index, "int32")
    return {
        "scores": scores,
        "tokens": gather(joined["tokens"], index),
        "lengths": gather(joined["lengths"], index),
    }


def best_of(finished, live):
    """The N best finished hypotheses; where there are fewer, live ones that the limit cut.

    Args:
        finished: Dict of `scores`, `lengths` `(B, N)` and `tokens` `(B, N, L)`, best first;
            of length 0 where there is none.
        live: The same, `(B, K)`, in any order, of score `NEG_INF` where there is none.

    Returns:
        A `SearchResult`.
    """
    count, cut = finished["scores"].shape[1], live["scores"].shape[1]
    # A penalty for coverage orders them otherwise than the sums by which they are kept.
    _, order = ops.top_k(live["scores"], cut)
    live = {name: gather(value, ops.cast(order, "int32")) for name, value in live.items()}
    exists = live["scores"] > NEG_INF / 2
    # Finished ones are sorted and come first, so their places are the first that exist.
    is_finished = finished["lengths"] > 0
    last = 3 * (count + cut)
    rank = ops.concatenate(
        [
            ops.where(is_finished, ops.arange(count), last),
            ops.where(exists, count + ops.arange(cut), last),
        ],
        axis=1,
    )
    _, index = ops.top_k(-rank, count)
    index = ops.cast(index, "int32")

    def pick(ended, running):
        return gather(ops.concatenate([ended, running], axis=1), index)

    lengths = pick(finished["lengths"], ops.where(exists, live["lengths"], 0))
    return SearchResult(
        tokens=pick(finished["tokens"], live["tokens"]) * ops.cast(lengths > 0, "int32")[..., None],
        lengths=lengths,
        scores=pick(finished["scores"], live["scores"]),
        truncated=ops.logical_and(pick(ops.zeros_like(is_finished), exists), lengths > 0),
    )
