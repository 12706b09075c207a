"""Which few batch shapes a corpus needs, for compilers that want them static."""

import numpy as np


def ladder(longest: int) -> list[int]:
    """The lengths a batch may be padded to, up to the first that holds `longest` steps.

    Multiples of 8, which is what matrix units like, in steps that grow with the
    length: no sequence of more than 16 steps is padded by more than half.

    Args:
        longest: Integer, the number of steps that the last length must hold.

    Returns:
        The lengths, ascending.

    Example:

    >>> ladder(70)
    [8, 16, 24, 32, 48, 64, 96]
    """
    rungs = [8]
    while rungs[-1] < longest:
        rungs.append(16 if rungs[-1] == 8 else _next(rungs[-1]))
    return rungs


def _next(rung: int) -> int:
    power = 1 << (rung.bit_length() - 1)
    return power + power // 2 if rung == power else 2 * power


def choose_shapes(
    source_steps: np.ndarray, target_steps: np.ndarray, max_shapes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Chooses at most `max_shapes` shapes, and the cheapest of them for each pair.

    Every pair belongs to a cell of the grid ladder x ladder. The cells that hold
    pairs are the first shapes. Then, again and again, the shape that can be spared
    at the least padding goes, and its pairs move to the next larger one. The shape
    that holds everything stays as long as anything needs it. In the end every shape
    shrinks to what its pairs need, in multiples of 8.

    Args:
        source_steps: Integer array `(N,)`, steps of each source.
        target_steps: Integer array `(N,)`, steps of each target.
        max_shapes: Positive integer.

    Returns:
        bounds: Int64 array `(M, 2)`, the source and target lengths of each shape.
        shape: Array `(N,)`, the row of `bounds` of each pair, in the smallest
            unsigned type.
    """
    rungs = np.array(ladder(int(max(source_steps.max(), target_steps.max()))))
    cell = np.searchsorted(rungs, target_steps).astype(np.uint16) * np.uint16(len(rungs))
    cell += np.searchsorted(rungs, source_steps).astype(np.uint16)
    counts = np.bincount(cell, minlength=len(rungs) ** 2)
    corner = int(np.searchsorted(rungs, target_steps.max())) * len(rungs)
    corner += int(np.searchsorted(rungs, source_steps.max()))
    cells = np.union1d(np.flatnonzero(counts), [corner])
    last = int(np.searchsorted(cells, corner))
    bounds = np.stack([rungs[cells % len(rungs)], rungs[cells // len(rungs)]], axis=1)

    holds = (bounds[None] >= bounds[:, None]).all(-1)  # (cells, shapes)
    cost = np.where(holds, bounds.sum(-1), np.inf)
    alive = np.ones(len(cells), bool)
    while alive.sum() > max_shapes:
        chosen = np.argmin(cost, axis=1)
        best = np.take_along_axis(cost, chosen[:, None], 1)[:, 0]
        without = cost.copy()
        without[np.arange(len(cells)), chosen] = np.inf
        extra = counts[cells] * (without.min(1, where=np.isfinite(without), initial=2.0**40) - best)
        loss = np.bincount(chosen, weights=extra, minlength=len(cells))
        loss[~alive] = np.inf
        loss[last] = np.inf
        spared = int(np.argmin(loss))
        alive[spared] = False
        cost[:, spared] = np.inf
    chosen = np.argmin(cost, axis=1)
    used = np.unique(chosen[counts[cells] > 0])
    shape_of_cell = np.zeros(len(rungs) ** 2, np.uint8 if len(used) <= 256 else np.uint16)
    occupied = counts[cells] > 0
    shape_of_cell[cells[occupied]] = np.searchsorted(used, chosen[occupied])
    shape = shape_of_cell[cell]
    # The last rungs are far apart; no shape needs to be larger than its largest pair.
    needed = np.zeros((len(used), 2), np.int64)
    np.maximum.at(needed, shape, np.stack([source_steps, target_steps], axis=1))
    return np.minimum(bounds[used], -(-needed // 8) * 8), shape
