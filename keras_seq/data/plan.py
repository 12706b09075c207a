"""Batch plan: groups pairs of similar length and cuts the groups into batches."""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from keras_seq.data.shapes import choose_shapes
from keras_seq.text import InputError

Shapes = Literal["exact", "buckets"]


class Lengths(Protocol):
    """The attributes of a corpus from which batches are planned."""

    source_lengths: np.ndarray
    target_lengths: np.ndarray


@dataclass(frozen=True)
class Plan:
    """Groups of N pairs, and the sizes and shapes of M batches, the same in every epoch.

    `group` `(N,)` is the group of each pair. Batch i is the slice `cuts[i]:cuts[i + 1]` of the
    pairs sorted by group. `shape` `(M, 3)` has upper bounds of the rows, source steps and target
    steps of each batch; batches with fixed shapes are padded to these bounds.
    """

    group: np.ndarray
    cuts: np.ndarray
    shape: np.ndarray

    def __len__(self) -> int:
        return len(self.shape)

    def in_order(self) -> np.ndarray:
        """Returns the pairs sorted by group, in corpus order within a group: int32 `(N,)`."""
        return np.argsort(self.group, kind="stable").astype(np.int32)

    def shuffled(self, seed: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Shuffles the pairs within each group, and shuffles the batches.

        Returns the indices of the pairs, int32 `(N,)`, in ascending order of groups; and the
        indices of the batches, int64 `(M,)`. Uses the raw bits of the generator, which numpy
        guarantees, so that an upgrade of numpy does not change the batches of a resumed run.
        """
        bits = np.random.PCG64(np.random.SeedSequence([seed, epoch]))
        # Sorting by this key groups and shuffles: 16 bits of the group, then 48 random bits.
        key = bits.random_raw(len(self.group))
        key >>= np.uint64(16)
        key |= self.group.astype(np.uint64) << np.uint64(48)
        # Stable, so that ties do not depend on the sorting routine of the machine.
        pairs = np.argsort(key, kind="stable").astype(np.int32)
        return pairs, np.argsort(bits.random_raw(len(self)), kind="stable")


def make_plan(
    lengths: Lengths, *, batch_tokens: int, bucket_width: int, shapes: Shapes, max_shapes: int
) -> Plan:
    """Plans the batches of a `BatchStream`; raises ValueError if one of its settings is invalid.

    `lengths` may be upper bounds. A source or target takes one step more than it has tokens, for
    the begin or end token.
    """
    for name, value in (
        ("batch_tokens", batch_tokens),
        ("bucket_width", bucket_width),
        ("max_shapes", max_shapes),
    ):
        if value < 1:
            raise ValueError(f"{name} must be a positive integer, received {value!r}")
    if len(lengths.source_lengths) == 0:
        raise InputError(
            "The corpus has no pairs; write one with at least one pair that is neither empty "
            "nor too long."
        )
    if shapes == "exact":
        return _plan_exact(lengths, batch_tokens, bucket_width)
    if shapes == "buckets":
        return _plan_fixed(lengths, batch_tokens, max_shapes)
    raise ValueError(f'shapes must be "exact" or "buckets", received {shapes!r}')


def _plan_exact(lengths: Lengths, batch_tokens: int, bucket_width: int) -> Plan:
    """Plans batches that fill the token budget; each is padded to its own longest pair.

    A group is a window of `bucket_width` target steps by `bucket_width` source steps. The window
    doubles until there are at most 65,536 groups. Groups are ordered by target length, and by
    source length in alternating direction. Neighboring groups are therefore similar, and a batch
    that spans two groups has little padding.
    """
    source_steps, target_steps = _steps(lengths)
    # The sort key of `shuffled` has 16 bits for the group.
    longest = int(source_steps.max()), int(target_steps.max())
    while (longest[0] // bucket_width + 1) * (longest[1] // bucket_width + 1) > 2**16:
        bucket_width *= 2
    width = longest[0] // bucket_width + 1
    target_bins = target_steps // bucket_width
    source_bins = source_steps // bucket_width
    source_bins = np.where(target_bins % 2 == 1, width - 1 - source_bins, source_bins)
    group = (target_bins * width + source_bins).astype(np.uint16)
    counts = np.bincount(group)
    source_bounds = _group_maxima(group, source_steps, len(counts))
    target_bounds = _group_maxima(group, target_steps, len(counts))
    cuts, shapes = [0], []
    rows = source = target = 0
    for number in np.flatnonzero(counts).tolist():
        remaining = int(counts[number])
        while remaining:
            new_source = max(source, int(source_bounds[number]))
            new_target = max(target, int(target_bounds[number]))
            room = max(batch_tokens // max(new_source, new_target), 1) - rows
            if room <= 0:
                cuts.append(cuts[-1] + rows)
                shapes.append((rows, source, target))
                rows = source = target = 0
                continue
            added = min(room, remaining)
            rows, source, target = rows + added, new_source, new_target
            remaining -= added
    cuts.append(cuts[-1] + rows)
    shapes.append((rows, source, target))
    return Plan(group, np.array(cuts, np.int64), np.array(shapes, np.int64))


def _plan_fixed(lengths: Lengths, batch_tokens: int, max_shapes: int) -> Plan:
    """Plans batches of at most `max_shapes` different shapes, for compilers.

    The pairs of a shape are distributed evenly over its batches, so that the last batch has few
    empty rows.
    """
    source_steps, target_steps = _steps(lengths)
    bounds, group = choose_shapes(source_steps, target_steps, max_shapes)
    cuts, shapes = [np.zeros(1, np.int64)], []
    for (source, target), count in zip(bounds.tolist(), np.bincount(group).tolist(), strict=True):
        batches = -(-count // max(batch_tokens // max(source, target), 1))
        rows = -(-count // batches)
        # Rounding up may save a batch: of 4 batches of 3 rows, 9 pairs fill only 3.
        batches = -(-count // rows)
        ends = np.minimum(np.arange(1, batches + 1) * rows, count)
        cuts.append(cuts[-1][-1] + ends)
        shapes += [(rows, source, target)] * batches
    return Plan(group, np.concatenate(cuts), np.array(shapes, np.int64))


def _steps(lengths: Lengths) -> tuple[np.ndarray, np.ndarray]:
    return lengths.source_lengths + np.int32(1), lengths.target_lengths + np.int32(1)


def _group_maxima(group: np.ndarray, steps: np.ndarray, groups: int) -> np.ndarray:
    result = np.zeros(groups, np.int64)
    np.maximum.at(result, group, steps)
    return result
