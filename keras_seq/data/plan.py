"""Which pairs go together: groups of like length, and where the batches are cut.

A pair of tokens takes one step more on each side than it has tokens: the source
ends with the end token, the target begins with the begin token where it goes in and
ends with the end token where it is expected.

Groups and cuts depend on the lengths alone, so they are the same in every epoch; what an
epoch decides is which pair of its group takes which place, and the order of the batches.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from keras_seq.data.shapes import choose_shapes

Shapes = Literal["exact", "buckets"]


class Lengths(Protocol):
    """What a plan needs to know of a corpus."""

    source_lengths: np.ndarray
    target_lengths: np.ndarray


@dataclass(frozen=True)
class Plan:
    """The groups of the pairs and the batches cut from them.

    Shapes: N pairs, G groups, M batches.

    Attributes:
        group: Unsigned integer array `(N,)`, the group of each pair.
        cuts: Int64 array `(M + 1,)`: batch i has the places `cuts[i]` to `cuts[i + 1]` of
            the pairs sorted by group.
        shape: Int64 array `(M, 3)` of rows, source steps and target steps that hold
            each batch. Rows and steps are bounds; fixed shapes are filled up to them.
    """

    group: np.ndarray
    cuts: np.ndarray
    shape: np.ndarray

    def __len__(self) -> int:
        return len(self.shape)

    def in_order(self) -> np.ndarray:
        """The pairs sorted by group and, within a group, as in the corpus: int32 `(N,)`."""
        return np.argsort(self.group, kind="stable").astype(np.int32)

    def shuffled(self, seed: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """The pairs and the batches of an epoch in random order.

        Only raw bits of the generator are used, whose sequence numpy guarantees; its
        own `permutation` may change with the version of numpy, and a run that
        goes on after an upgrade would see other batches.

        Args:
            seed: Non-negative integer.
            epoch: Non-negative integer.

        Returns:
            pairs: Int32 array `(N,)`, random within each group, groups ascending.
            batches: Int64 array `(M,)`, the order in which to take the batches.
        """
        bits = np.random.PCG64(np.random.SeedSequence([seed, epoch]))
        # One sort does both: the group in the upper 16 bits, chance in the 48 below.
        key = bits.random_raw(len(self.group))
        key >>= np.uint64(16)
        key |= self.group.astype(np.uint64) << np.uint64(48)
        # Stable, for the rare tie must not depend on the sorting routine of the machine.
        pairs = np.argsort(key, kind="stable").astype(np.int32)
        return pairs, np.argsort(bits.random_raw(len(self)), kind="stable")


def make_plan(
    lengths: Lengths,
    *,
    batch_tokens: int,
    bucket_width: int,
    shapes: Shapes,
    max_shapes: int,
) -> Plan:
    """Checks the settings of a stream and plans its batches.

    Args:
        lengths: Those of the corpus, or larger ones to plan with.
        batch_tokens, bucket_width, shapes, max_shapes: As for `BatchStream`.

    Raises:
        ValueError: As `BatchStream` does.
    """
    for name, value in (
        ("batch_tokens", batch_tokens),
        ("bucket_width", bucket_width),
        ("max_shapes", max_shapes),
    ):
        if value < 1:
            raise ValueError(f"{name} must be a positive integer, received {value!r}")
    if len(lengths.source_lengths) == 0:
        raise ValueError(
            "The corpus has no pairs; write one with at least one pair that is neither empty "
            "nor too long."
        )
    if shapes == "exact":
        return plan_exact(lengths, batch_tokens, bucket_width)
    if shapes == "buckets":
        return plan_fixed(lengths, batch_tokens, max_shapes)
    raise ValueError(f'shapes must be "exact" or "buckets", received {shapes!r}')


def plan_exact(lengths: Lengths, batch_tokens: int, bucket_width: int) -> Plan:
    """Batches as full as the budget allows, each padded to its own longest pair.

    Groups are rectangles of `bucket_width` target steps by `bucket_width` source steps (more
    where there would be over 65,536 of them). They are taken by target length, and
    by source length up and down in turn, so that neighbours are alike and a batch
    that takes from two groups pads little.

    Args:
        lengths: The corpus.
        batch_tokens: Positive integer: rows x the longer side stays within it, except
            in a batch of one row.
        bucket_width: Positive integer.

    Returns:
        The plan; the rows of its shapes are exact, the steps are bounds.
    """
    source_steps, target_steps = _steps(lengths)
    # The groups must fit the 16 bits that the sorting key of an epoch has for them.
    longest = int(source_steps.max()), int(target_steps.max())
    while (longest[0] // bucket_width + 1) * (longest[1] // bucket_width + 1) > 2**16:
        bucket_width *= 2
    width = longest[0] // bucket_width + 1
    target_bins = target_steps // bucket_width
    source_bins = source_steps // bucket_width
    source_bins = np.where(target_bins % 2 == 1, width - 1 - source_bins, source_bins)
    group = (target_bins * width + source_bins).astype(np.uint16)
    counts = np.bincount(group)
    source_bounds = _largest(group, source_steps, len(counts))
    target_bounds = _largest(group, target_steps, len(counts))
    cuts, shapes = [0], []
    rows = source = target = 0
    for number in np.flatnonzero(counts).tolist():
        left = int(counts[number])
        while left:
            wider = max(source, int(source_bounds[number]))
            higher = max(target, int(target_bounds[number]))
            room = max(batch_tokens // max(wider, higher), 1) - rows
            if room <= 0:
                cuts.append(cuts[-1] + rows)
                shapes.append((rows, source, target))
                rows = source = target = 0
                continue
            taken = min(room, left)
            rows, source, target, left = rows + taken, wider, higher, left - taken
    cuts.append(cuts[-1] + rows)
    shapes.append((rows, source, target))
    return Plan(group, np.array(cuts, np.int64), np.array(shapes, np.int64))


def plan_fixed(lengths: Lengths, batch_tokens: int, max_shapes: int) -> Plan:
    """Batches of at most `max_shapes` different shapes, for compilers.

    The pairs of a shape are spread evenly over its batches, so that few rows of the
    last one are empty.

    Args:
        lengths: The corpus.
        batch_tokens: Positive integer: rows x the longer side stays within it, except
            in a batch of one row.
        max_shapes: Positive integer.

    Returns:
        The plan; every batch is to be filled up to its shape.
    """
    source_steps, target_steps = _steps(lengths)
    bounds, group = choose_shapes(source_steps, target_steps, max_shapes)
    cuts, shapes = [np.zeros(1, np.int64)], []
    for (source, target), count in zip(bounds.tolist(), np.bincount(group).tolist(), strict=True):
        batches = -(-count // max(batch_tokens // max(source, target), 1))
        rows = -(-count // batches)
        # Even rows may need fewer batches: 9 pairs in 4 batches make 3 rows, which 3 batches hold.
        batches = -(-count // rows)
        ends = np.minimum(np.arange(1, batches + 1) * rows, count)
        cuts.append(cuts[-1][-1] + ends)
        shapes += [(rows, source, target)] * batches
    return Plan(group, np.concatenate(cuts), np.array(shapes, np.int64))


def _steps(lengths: Lengths) -> tuple[np.ndarray, np.ndarray]:
    return lengths.source_lengths + np.int32(1), lengths.target_lengths + np.int32(1)


def _largest(group: np.ndarray, steps: np.ndarray, groups: int) -> np.ndarray:
    result = np.zeros(groups, np.int64)
    np.maximum.at(result, group, steps)
    return result
