"""Measures the ceiling of the machine: TensorFlow's matrix products on all cores."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from contest import Answer, Entrant
from contestants import Contestant, contestant
from table import digits, show

# Products of feed-forward and vocabulary scores for 4,096 tokens, and a large square product.
SIZES = ("4096x256x1024", "4096x256x8000", "2048x2048x2048")
PRECISIONS = ("float32", "bfloat16")
NAME = "matrix products"


def worker_of(sizes: Sequence[str]) -> Contestant:
    return contestant(NAME, "ceiling_worker", *(f"--size={size}" for size in sizes))


def turn(entrant: Entrant, counted: bool) -> Answer:
    return entrant.ask([{}])[0]


def medians(figures: list[Answer]) -> dict[str, dict[str, float]]:
    """Median operations per second for each precision and size."""
    return {
        precision: {
            size: statistics.median(answer[precision][size] for answer in figures)
            for size in figures[0][precision]
        }
        for precision in PRECISIONS
    }


def ceilings(figures: list[Answer]) -> dict[str, float]:
    """For each precision, the median over all sizes."""
    found = medians(figures)
    return {precision: statistics.median(found[precision].values()) for precision in PRECISIONS}


def show_ceiling(figures: list[Answer]) -> None:
    found, ceiling = medians(figures), ceilings(figures)
    print("\nThe machine's ceiling: TensorFlow's matrix product on all cores, GFLOP/s, medians\n")
    rows = [
        [size, *(digits(found[precision][size] / 1e9) for precision in PRECISIONS)]
        for size in found[PRECISIONS[0]]
    ]
    rows.append(["median of these", *(digits(ceiling[name] / 1e9) for name in PRECISIONS)])
    show(["size", *PRECISIONS], rows)
