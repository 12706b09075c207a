"""Parts of a batch for CPU cores: each row once, nothing lost, and even costs."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_seq.training.batch_splitting import shares, split_batch


def padded(lengths, width):
    """Ids that tell rows apart, `(B, width)`."""
    ids = 1 + np.arange(len(lengths) * width, dtype=np.int32).reshape(len(lengths), width)
    return np.where(np.arange(width) < np.asarray(lengths)[:, None], ids, 0)


def pairs(sources, targets, room=0):
    """A batch for `fit`, of rows of these lengths, with so many steps of padding at the ends."""
    inputs = {
        "source": padded(sources, max(sources) + room),
        "target": padded(targets, max(targets) + room),
    }
    return inputs, 7 * inputs["target"], np.arange(1, 1 + len(sources), dtype=np.float32)


LENGTHS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=9)


@given(LENGTHS, st.integers(1, 5), st.integers(0, 3))
@settings(deadline=None, max_examples=100)
def test_every_row_is_in_one_part_and_nothing_but_padding_is_cut(lengths, count, room):
    batch = pairs(*zip(*lengths, strict=True), room=room)
    parts = split_batch(batch, count)
    assert 1 <= len(parts) <= min(count, len(lengths))
    found = {}
    for inputs, targets, weights in parts:
        assert len(weights) > 0
        for ids in (inputs["source"], inputs["target"]):
            assert ids[:, -1].any()
        np.testing.assert_array_equal(targets, 7 * inputs["target"])
        for row, weight in enumerate(weights):
            assert weight not in found
            found[weight] = [ids[row][ids[row] > 0] for ids in (inputs["source"], targets)]
    assert len(found) == len(lengths)
    for row, weight in enumerate(batch[2]):
        for ids, kept in zip((batch[0]["source"], batch[1]), found[weight], strict=True):
            np.testing.assert_array_equal(ids[row][ids[row] > 0], kept)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8).map(sorted), st.integers(1, 4))
@settings(deadline=None, max_examples=100)
def test_shares_minimize_the_cost_of_the_most_expensive_part(costs, count):
    def most_expensive(ends):
        return max(
            (end - start) * costs[end - 1] for start, end in itertools.pairwise(ends) if end > start
        )

    rows = len(costs)
    ends = shares(np.array(costs), count)
    assert (ends[0], ends[-1]) == (0, rows) and sorted(set(ends)) == ends
    assert len(ends) <= count + 1
    cuts = itertools.combinations_with_replacement(range(rows + 1), count - 1)
    assert most_expensive(ends) == min(most_expensive([0, *cut, rows]) for cut in cuts)


def test_parts_group_sources_of_equal_length():
    parts = split_batch(pairs([9, 2, 9, 2, 9, 2], [4] * 6), 2)
    assert [part[0]["source"].shape for part in parts] == [(3, 2), (3, 9)]
    assert [part[2].tolist() for part in parts] == [[2, 4, 6], [1, 3, 5]]


def test_higher_target_cost_makes_the_parts_more_even():
    batch = pairs([1, 2, 3, 4, 5, 6, 7, 8], [3] * 8)
    rows = [
        [len(part[2]) for part in split_batch(batch, 2, target_cost=cost)] for cost in (0, 1, 100)
    ]
    # 5 * 5 and 3 * 8; 5 * (5 + 3) and 3 * (8 + 3); 4 * (8 + 300), and 5 * (5 + 300) is more.
    assert rows == [[5, 3], [5, 3], [4, 4]]


def test_alignments_are_cut_together_with_their_tokens():
    inputs, targets, weights = pairs([2, 5], [3, 1])
    links = np.zeros((2, 3, 5), np.float32)
    links[0, 2, 1] = links[1, 0, 4] = 1
    several = {"logits": targets, "attention": links}
    weights = {"logits": weights, "attention": weights}
    first, second = split_batch((inputs, several, weights), 2)
    np.testing.assert_array_equal(first[1]["attention"], links[:1, :, :2])
    np.testing.assert_array_equal(second[1]["attention"], links[1:, :1])
    assert second[1]["logits"].tolist() == targets[1:, :1].tolist()
    assert second[2]["attention"].tolist() == [2]


@pytest.mark.parametrize(("rows", "sizes"), [(5, [1, 2, 2]), (2, [1, 1]), (1, [1])])
def test_label_rows_are_split_evenly_in_their_original_order(rows, sizes):
    inputs = {"source": padded([3] * rows, 4)}
    weights = np.arange(rows, dtype=np.float32)
    parts = split_batch((inputs, np.arange(rows), weights), 3)
    assert sorted(len(part[2]) for part in parts) == sizes
    assert np.concatenate([part[1] for part in parts]).tolist() == [*range(rows)]
    assert all(part[0]["source"].shape[1] == 4 for part in parts)


def test_batch_of_only_padding_keeps_one_time_step():
    empty = np.zeros((2, 3), np.int32)
    ((inputs, targets, _),) = split_batch(
        ({"source": empty, "target": empty}, empty, np.ones(2, np.float32)), 1
    )
    assert inputs["source"].shape == inputs["target"].shape == targets.shape == (2, 1)
