"""Hypotheses of a search: finished, live, and as the result."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_seq import backend
from keras_seq.backend import gather

# Shape letters: B batch, K beam, J picked, N n-best, L steps.

# Score of a missing hypothesis: below any real score, and far from the limit of float32.
NEG_INF = -1e30


def exists(scores: Any) -> Any:
    """Returns True where a score belongs to a hypothesis, and False where it is `NEG_INF`."""
    return scores > NEG_INF / 2


class SearchResult(NamedTuple):
    """The hypotheses of a search, best first.

    Attributes:
        tokens: Int32 `(B, N, L)`; the end token included, followed by 0.
        lengths: Int32 `(B, N)`; number of tokens with the end token; 0 if a row has fewer than N
            hypotheses.
        scores: Float32 `(B, N)`; normalized log-probability.
        truncated: Bool `(B, N)`; True if the length limit came before the end token.
    """

    tokens: Any
    lengths: Any
    scores: Any
    truncated: Any


def select_rows(condition: Any, if_true: Any, if_false: Any) -> Any:
    """Applies `ops.where` to the rows of two structures of tensors. `condition` is bool `(B,)`."""

    def select(first: Any, second: Any) -> Any:
        return ops.where(
            ops.reshape(condition, (-1,) + (1,) * (len(first.shape) - 1)), first, second
        )

    return keras.tree.map_structure(select, if_true, if_false)


def reorder_state(state: Any, parents: Any) -> Any:
    """Gathers every tensor of `state["beam"]` by parent; `state["shared"]` does not change."""
    beam = keras.tree.map_structure(lambda tensor: gather(tensor, parents), state["beam"])
    return {**state, "beam": beam}


def merge_finished(finished: Any, ending: Any) -> Any:
    """Merges hypotheses that end now, `(B, K)`, into the N best finished ones, `(B, N)`.

    Both are dicts of `scores`, `tokens` and `lengths`.
    """
    merged = {key: ops.concatenate([finished[key], ending[key]], axis=1) for key in finished}
    scores, index = backend.top_k(merged["scores"], finished["scores"].shape[1])
    return {
        "scores": scores,
        "tokens": gather(merged["tokens"], index),
        "lengths": gather(merged["lengths"], index),
    }


def best_of(finished: Any, live: Any) -> SearchResult:
    """Returns the N best hypotheses: finished ones first, then live ones, which are truncated.

    Both are dicts of `scores`, `lengths` `(B, N)` and `tokens` `(B, N, L)`: finished ones best
    first, live ones in any order. A missing hypothesis has length 0 or the score `NEG_INF`.
    """
    num_finished, num_live = finished["scores"].shape[1], live["scores"].shape[1]
    # A coverage penalty changes the order of the live hypotheses.
    _, order = backend.top_k(live["scores"], num_live)
    live = {name: gather(value, order) for name, value in live.items()}
    is_live = exists(live["scores"])
    is_finished = finished["lengths"] > 0
    missing = 3 * (num_finished + num_live)
    rank = ops.concatenate(
        [
            ops.where(is_finished, ops.arange(num_finished), missing),
            ops.where(is_live, num_finished + ops.arange(num_live), missing),
        ],
        axis=1,
    )
    _, index = backend.top_k(-rank, num_finished)

    def pick(ended: Any, running: Any) -> Any:
        return gather(ops.concatenate([ended, running], axis=1), index)

    lengths = pick(finished["lengths"], ops.where(is_live, live["lengths"], 0))
    return SearchResult(
        tokens=pick(finished["tokens"], live["tokens"]) * ops.cast(lengths > 0, "int32")[..., None],
        lengths=lengths,
        scores=pick(finished["scores"], live["scores"]),
        truncated=ops.logical_and(pick(ops.zeros_like(is_finished), is_live), lengths > 0),
    )
