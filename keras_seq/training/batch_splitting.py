"""Parts of a batch for cores that compute them at the same time."""

from __future__ import annotations

import functools

import numpy as np

from keras_seq.cluster import PartsOf
from keras_seq.settings import Settings
from keras_seq.training.feed import Arrays, FitBatch

# Shape letters: B rows, S source steps, T target steps.

# How many steps of a source cost what one of a target costs: both have products with the weights
# of their side, that of a target with the scores of all words, too. Of the presets, about.
_TARGET_COST = {"transformer": 2, "rnn": 6, "vae-rnn": 4, "transformer-hub": 1}


def parts_by(settings: Settings) -> PartsOf:
    """`split_batch` for the model that some settings describe."""
    return functools.partial(split_batch, target_cost=_TARGET_COST.get(settings.model.family, 2))


def split_batch(batch: FitBatch, count: int, target_cost: int = 2) -> list[FitBatch]:
    """Shares the rows of a batch out, so that the most expensive part costs as little as can be.

    Rows of pairs are put in the order of their sources, and each part is without the steps that
    are padding in all its rows: where targets are of a length, as in a batch, that leaves
    little padding. Other rows are shared out evenly, as they come.

    Args:
        batch: As an `Objective` makes it.
        count: Positive integer, how many parts at most.
        target_cost: How many steps of a source cost what one of a target costs.

    Returns:
        One part at least, none without rows; together the rows of the batch.
    """
    inputs, targets, weights = batch
    if "target" not in inputs:
        rows = len(inputs["source"])
        ends = [rows * number // count for number in range(count + 1)]
        return [
            _rows(batch, np.arange(start, end))
            for start, end in zip(ends, ends[1:], strict=False)
            if start < end
        ]
    lengths = _lengths(inputs["source"])
    order = np.argsort(lengths, kind="stable")
    costs = lengths[order] + target_cost * inputs["target"].shape[1]
    ends = shares(costs, count)
    return [
        _without_padding(_rows(batch, order[start:end]))
        for start, end in zip(ends, ends[1:], strict=False)
    ]


def shares(costs: np.ndarray, count: int) -> list[int]:
    """Cuts rows into parts of even costs; each part is as wide as its last row.

    Args:
        costs: Positive integers `(B,)`, ascending: what one row costs where all are as wide.
        count: Positive integer, how many parts at most.

    Returns:
        0, and the end of each part; the last one is B.
    """
    low, high = int(costs[-1]), int(costs[-1]) * len(costs)
    while low < high:
        limit = (low + high) // 2
        if len(_cut(costs, limit)) <= count + 1:
            high = limit
        else:
            low = limit + 1
    return _cut(costs, low)


def _cut(costs: np.ndarray, limit: int) -> list[int]:
    """Cuts into the fewest parts that cost at most `limit`, the cost of one row or more."""
    ends = [0]
    while ends[-1] < len(costs):
        rest = costs[ends[-1] :]
        each = rest * np.arange(1, len(rest) + 1)
        ends.append(ends[-1] + int(np.searchsorted(each, limit, side="right")))
    return ends


def _rows(batch: FitBatch, rows: np.ndarray) -> FitBatch:
    def chosen(arrays: np.ndarray | Arrays) -> np.ndarray | Arrays:
        if isinstance(arrays, dict):
            return {name: array[rows] for name, array in arrays.items()}
        return arrays[rows]

    inputs, targets, weights = batch
    return {name: array[rows] for name, array in inputs.items()}, chosen(targets), chosen(weights)


def _without_padding(batch: FitBatch) -> FitBatch:
    inputs, targets, weights = batch
    several = targets if isinstance(targets, dict) else {"": targets}
    scored = [array for array in several.values() if array.ndim == 2]
    source = _width(inputs["source"])
    target = max(_width(array) for array in (inputs["target"], *scored))

    def trimmed(array: np.ndarray) -> np.ndarray:
        # An alignment is `(B, T, S)`.
        return array[:, :target] if array.ndim == 2 else array[:, :target, :source]

    kept = {name: trimmed(array) for name, array in several.items()}
    return (
        {"source": inputs["source"][:, :source], "target": trimmed(inputs["target"])},
        kept if isinstance(targets, dict) else kept[""],
        weights,
    )


def _width(ids: np.ndarray) -> int:
    return max(int(_lengths(ids).max()), 1)


def _lengths(ids: np.ndarray) -> np.ndarray:
    """Of each row, the steps up to the last one that is not padding, int64 `(B,)`."""
    steps = np.arange(1, ids.shape[1] + 1)
    lengths: np.ndarray = np.where(ids != 0, steps, 0).max(axis=1, initial=0)
    return lengths
