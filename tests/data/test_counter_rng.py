"""Counter-based random numbers: SplitMix64, and no correlation between pairs."""

import numpy as np
import pytest

from keras_seq.data.counter_rng import Purpose, counter_uniforms, row_keys

MASK = 2**64 - 1


def split_mix(state: int, count: int) -> list[int]:
    """SplitMix64 as its authors publish it, in Python integers."""
    numbers = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        numbers.append(z ^ (z >> 31))
    return numbers


def test_uniforms_match_the_published_splitmix64_output():
    """Test vectors of several implementations use the seed 1234567."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert split_mix(1234567, 3) == published
    found = counter_uniforms(np.array([1234567], np.uint64), 3)[0]
    assert found.tolist() == [(number >> 11) * 2.0**-53 for number in published]


def test_uniforms_follow_splitmix64_for_every_row_key():
    keys = row_keys(3, 2, np.array([0, 7, 2**31 - 1]), Purpose.SOURCE_PIECES)
    expected = [[(n >> 11) / 2**53 for n in split_mix(key, 9)] for key in keys.tolist()]
    assert counter_uniforms(keys, 9).tolist() == expected
    assert counter_uniforms(keys, 4).tolist() == [row[:4] for row in expected]


def test_row_keys_differ_by_seed_epoch_pair_and_purpose():
    pairs = np.arange(2000)
    made = [
        row_keys(seed, epoch, pairs, purpose)
        for seed in (0, 1, 2**40)
        for epoch in (0, 1, 2)
        for purpose in Purpose
    ]
    assert len(np.unique(np.concatenate(made))) == 2000 * len(made)
    # The key of a pair does not depend on the other pairs.
    assert row_keys(1, 1, pairs, Purpose.SOURCE_WORDS)[[5, 99]].tolist() == (
        row_keys(1, 1, np.array([5, 99]), Purpose.SOURCE_WORDS).tolist()
    )


@pytest.mark.parametrize("epoch", [0, 1])
def test_uniforms_are_uniform_and_uncorrelated(epoch):
    numbers = counter_uniforms(row_keys(1, epoch, np.arange(20_000), Purpose.TARGET_WORDS), 10)
    assert 0 <= numbers.min() and numbers.max() < 1
    counts = np.histogram(numbers, bins=100, range=(0, 1))[0]
    # Chi-square with 99 degrees of freedom exceeds 149 once in a thousand cases.
    assert ((counts - 2000) ** 2 / 2000).sum() < 149
    for one, other in (
        (numbers[:-1], numbers[1:]),
        (numbers[:, :-1], numbers[:, 1:]),
        (
            numbers,
            counter_uniforms(row_keys(1, epoch + 1, np.arange(20_000), Purpose.TARGET_WORDS), 10),
        ),
        (
            numbers,
            counter_uniforms(row_keys(1, epoch, np.arange(20_000), Purpose.SOURCE_WORDS), 10),
        ),
    ):
        # 200,000 independent pairs correlate by less than 4 / sqrt(200,000).
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.009
