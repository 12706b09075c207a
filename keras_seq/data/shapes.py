"""Chooses a small set of static batch shapes, for compilers."""

import numpy as np


def ladder(longest: int) -> list[int]:
    """Returns the lengths that a batch may be padded to.

    The lengths are multiples of 8, which suits matrix units, and their distance grows with the
    length. A sequence of more than 16 steps is padded by at most half.

    Example:

    >>> ladder(70)
    [8, 16, 24, 32, 48, 64, 96]
    """
    rungs = [8]
    while rungs[-1] < longest:
        rung = rungs[-1]
        power = 1 << (rung.bit_length() - 1)
        rungs.append(power + power // 2 if rung == power > 8 else 2 * power)
    return rungs


def choose_shapes(
    source_steps: np.ndarray, target_steps: np.ndarray, max_shapes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Chooses at most `max_shapes` shapes, and assigns each pair to the cheapest one.

    Every pair belongs to a cell of the grid ladder x ladder. At first every occupied cell is a
    shape. The algorithm then greedily removes the shape whose removal adds the least padding and
    moves its pairs to the next larger shape. The shape that fits all pairs is never removed.
    Finally every shape shrinks to its largest pair, in multiples of 8.

    Returns the source and target lengths of each shape, int64 `(M, 2)`, and the shape of each pair,
    `(N,)` in the smallest unsigned type.
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

    fits = (bounds[None] >= bounds[:, None]).all(-1)  # (cells, shapes)
    cost = np.where(fits, bounds.sum(-1), np.inf)
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
        removed = int(np.argmin(loss))
        alive[removed] = False
        cost[:, removed] = np.inf
    chosen = np.argmin(cost, axis=1)
    used = np.unique(chosen[counts[cells] > 0])
    shape_of_cell = np.zeros(len(rungs) ** 2, np.uint8 if len(used) <= 256 else np.uint16)
    occupied = counts[cells] > 0
    shape_of_cell[cells[occupied]] = np.searchsorted(used, chosen[occupied])
    shape = shape_of_cell[cell]
    # Large bounds are far apart, so a shape may be much longer than its longest pair needs.
    needed = np.zeros((len(used), 2), np.int64)
    np.maximum.at(needed, shape, np.stack([source_steps, target_steps], axis=1))
    return np.minimum(bounds[used], -(-needed // 8) * 8), shape
