"""GloVe: counts against a plain loop, weights against the paper, steps against the gradient."""

import math
from collections import defaultdict

import numpy as np
import pytest

from keras_seq.vectors.cooccurrence import Cooccurrences
from keras_seq.vectors.glove import glove_steps, glove_tables, weight


def plain_counts(block, window):
    found = defaultdict(float)
    sentences = " ".join(map(str, block)).split("-1")
    for sentence in sentences:
        words = [int(word) for word in sentence.split()]
        for i, word in enumerate(words):
            for j, other in enumerate(words):
                if i != j and abs(i - j) <= window:
                    found[word, other] += 1 / abs(i - j)
    return found


@pytest.mark.parametrize("window", [1, 3, 15])
def test_pairs_count_the_inverse_of_their_distance(window):
    chance = np.random.default_rng(window)
    blocks = [
        np.append(np.where(chance.random(4000) < 0.1, -1, chance.integers(60, size=4000)), -1)
        for _ in range(3)
    ]
    counted = Cooccurrences(60, window)
    for block in blocks:
        counted.add(block.astype(np.int32))
    rows, columns, sums = counted.entries()
    expected = plain_counts(np.concatenate(blocks), window)
    assert len(rows) == len(expected)
    for row, column, found in zip(rows, columns, sums, strict=True):
        assert found == pytest.approx(expected[row, column], rel=1e-5)
    # A word also co-occurs with itself.
    assert (rows == columns).any()


def test_cooccurrence_table_grows_without_losing_pairs():
    counted = Cooccurrences(40_000, 1)
    for start in range(0, 40_000, 8_000):
        words = np.arange(start, start + 8_000, dtype=np.int32)
        counted.add(np.append(words, np.int32(-1)))
    rows, columns, sums = counted.entries()
    assert len(rows) == 2 * 5 * 7_999
    assert (np.abs(rows - columns) == 1).all() and (sums == 1).all()


@pytest.mark.parametrize(
    ("count", "expected"), [(100, 1), (1e6, 1), (50, 0.5**0.75), (1, 0.01**0.75)]
)
def test_glove_weights_equal_the_formula_of_the_paper(count, expected):
    assert weight(np.float32(count)) == pytest.approx(expected, rel=1e-6)


def loss_of(word, context, biases, count):
    """The weighted squared error of section 3 of the paper, multiplied by 1/2."""
    share = min(1, (count / 100) ** 0.75)
    return share * (word @ context + sum(biases) - math.log(count)) ** 2 / 2


@pytest.mark.parametrize("count", [7.0, 250.0])
def test_a_step_follows_the_gradient_by_adagrad(count):
    tables = glove_tables(3, 4, seed=1)
    tables.vectors[:] *= 10
    before = [array.astype(np.float64) for array in tables]
    parts = [before[0][0, 1], before[0][1, 2], np.array([before[1][0, 1], before[1][1, 2]])]
    gradients = []
    for number, part in enumerate(parts):
        found = np.zeros(part.shape)
        for place in range(len(part)):
            sides = []
            for step in (1e-5, -1e-5):
                moved = [one.copy() for one in parts]
                moved[number][place] += step
                sides.append(loss_of(*moved, count))
            found[place] = (sides[0] - sides[1]) / 2e-5
        gradients.append(found)
    counts = np.array([count], np.float32)
    one = np.zeros(1, np.int64)
    total = glove_steps(
        one, np.array([1], np.int32), np.array([2], np.int32), counts, tables, np.float32(0.05)
    )
    assert total == pytest.approx(loss_of(*parts, count), rel=1e-4)
    changed = [
        tables.vectors[0, 1],
        tables.vectors[1, 2],
        np.array([tables.biases[0, 1], tables.biases[1, 2]]),
    ]
    for part, gradient, found in zip(parts, gradients, changed, strict=True):
        expected = part - 0.05 * gradient / np.sqrt(1 + gradient**2)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    # Other rows do not change.
    assert (tables.vectors[0, 0] == before[0][0, 0]).all()
    assert (tables.vectors[0, 2] == before[0][0, 2]).all()
