"""The record of a beam search: every candidate of every step."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_seq.search.decode_loop import to_length

# Shape letters: B batch, K beam, L steps, C capacity, W candidates per step.


class SearchRecord(NamedTuple):
    """The W best candidates of each row at each step of a beam search, best first.

    W is the beam size K, or 2 K with a patience above 1.

    Attributes:
        tokens: Int32 `(B, L, W)`.
        parents: Int32 `(B, L, W)`; the beam slot of the hypothesis that the candidate extends.
        totals: Float32 `(B, L, W)`; summed log-probability, `NEG_INF` if there is no candidate.
        survives: Bool `(B, L, W)`; False if better candidates take all beam slots.
        slots: Int32 `(B, L, K)`; the candidate in each beam slot at the next step.
        steps: Int32 `(B,)`; the number of steps of the row. Later entries are 0.
    """

    tokens: Any
    parents: Any
    totals: Any
    survives: Any
    slots: Any
    steps: Any


def empty_record(batch: Any, beam_size: int, num_candidates: int, capacity: Any) -> dict[str, Any]:
    """Returns a record without steps, each part `(B, W, C)`."""
    parts = (
        ("tokens", "int32", num_candidates),
        ("parents", "int32", num_candidates),
        ("totals", "float32", num_candidates),
        ("survives", "bool", num_candidates),
        ("slots", "int32", beam_size),
    )
    return {name: ops.zeros((batch, size, capacity), dtype=dtype) for name, dtype, size in parts}


def record_step(record: dict[str, Any], is_now: Any, **parts: Any) -> dict[str, Any]:
    """Writes `parts`, each `(B, W)`, to the step at which `is_now` `(C,)` is True."""
    return {name: ops.where(is_now, part[..., None], record[name]) for name, part in parts.items()}


def finish_record(record: dict[str, Any], steps: Any, length: Any) -> SearchRecord:
    """Returns the record of a search, padded or truncated to `length` steps."""
    parts = keras.tree.map_structure(
        lambda part: ops.transpose(to_length(part, length), (0, 2, 1)), record
    )
    return SearchRecord(**parts, steps=steps)
