"""Temperature sampling: repeats the pairs of small groups, such as rare languages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

import numpy as np

Group = TypeVar("Group", bound=Hashable)
Item = TypeVar("Item")


def balanced_sizes(sizes: Mapping[Group, int], temperature: float) -> dict[Group, int]:
    """Returns how many pairs of each group an epoch has, if sampled with a temperature.

        m_i = round(n_max (n_i / n_max)^(1 / T)),  so that  m_i / sum of m  ~  n_i^(1 / T)

    The largest group keeps its n pairs, and no group has fewer than before, so an epoch contains
    every pair. T = 1 changes nothing; a large T makes all groups equal.

    Example:

    >>> balanced_sizes({"de": 10_000, "fr": 100}, 2)
    {'de': 10000, 'fr': 1000}

    Reference:
        Arivazhagan et al., "Massively Multilingual Neural Machine Translation in the Wild: Findings
        and Challenges", 2019, section 4.2, https://arxiv.org/abs/1907.05019
    """
    largest = max(sizes.values(), default=0)
    return {
        group: max(size, round(largest * (size / largest) ** (1 / temperature))) if size else 0
        for group, size in sizes.items()
    }


def balanced_rows(groups: np.ndarray, temperature: float) -> np.ndarray:
    """Returns the pairs of an epoch as row numbers, int32 `(M,)`, ascending.

    `groups` `(N,)` is the group of each pair. A pair of a group that has m pairs in the epoch and n
    in the corpus occurs m / n times, rounded up or down such that the sum is m; the additional
    copies are spread evenly over the group.
    """
    names, numbers, counts = np.unique(groups, return_inverse=True, return_counts=True)
    sizes = balanced_sizes(dict(enumerate(counts.tolist())), temperature)
    copies = np.zeros(len(groups), np.int64)
    for number in range(len(names)):
        ends = np.arange(counts[number] + 1, dtype=np.int64) * sizes[number] // counts[number]
        copies[numbers == number] = np.diff(ends)
    return np.repeat(np.arange(len(groups), dtype=np.int32), copies)


def balanced_items(
    items: Iterable[Item],
    group_of: Callable[[Item], Group],
    sizes: Mapping[Group, int],
    temperature: float,
) -> Iterator[Item]:
    """Yields items as often as `balanced_rows` does, but as a stream.

    `sizes` is the number of items in each group.

    Example:

    >>> "".join(balanced_items("aaaab", str, {"a": 4, "b": 1}, 2))
    'aaaabb'
    """
    balanced = balanced_sizes(sizes, temperature)
    done: Counter[Group] = Counter()
    for item in items:
        group = group_of(item)
        before, after = (
            number * balanced[group] // sizes[group] for number in (done[group], done[group] + 1)
        )
        done[group] += 1
        yield from [item] * (after - before)
