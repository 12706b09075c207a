"""`SpecAugment`: which numbers it sets to 0."""

import keras
import numpy as np
import pytest

from keras_seq.layers import SpecAugment

ROWS, STEPS, FEATURES = 200, 30, 12
LENGTHS = np.where(np.arange(ROWS) % 2, 30, 17)
MASK = np.arange(STEPS) < LENGTHS[:, None]
ONES = np.ones((ROWS, STEPS, FEATURES), "float32")


def masked(**options):
    """Returns which numbers a new layer masks: bool `(N, T, D)`."""
    outputs = SpecAugment(**options, seed=3)(ONES, mask=MASK, training=True)
    return keras.ops.convert_to_numpy(outputs) == 0


def runs(row):
    """Returns begin and width of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(int), [0]])))
    return list(zip(edges[::2], edges[1::2] - edges[::2], strict=True))


@pytest.mark.jax
def test_bands_are_as_wide_and_spans_as_long_as_documented():
    bands = masked(frequency_masks=1, frequency_width=4, time_masks=0)
    for row, length in zip(bands, LENGTHS, strict=True):
        np.testing.assert_array_equal(row[:length], np.tile(row[0], (length, 1)))
        assert len(runs(row[0])) <= 1
    widths = bands[:, 0].sum(1)
    # Each of 0 to 4, about equally often.
    assert np.bincount(widths, minlength=6)[:5].min() > 20 and widths.max() == 4
    assert bands[:, 0].any(0).all()
    spans = masked(frequency_masks=0, time_masks=1, time_share=0.3)
    for row, length in zip(spans, LENGTHS, strict=True):
        np.testing.assert_array_equal(row[:, 0], row[:, -1])
        assert len(runs(row[:length, 0])) <= 1
    for length, longest in ((30, 9), (17, 5)):
        widths = spans[LENGTHS == length][:, :length, 0].sum(1)
        assert (widths.min(), widths.max()) == (0, longest)
        assert spans[LENGTHS == length][:, :length, 0].any(0).all()


@pytest.mark.jax
def test_nothing_is_masked_without_training_and_masks_follow_the_seed():
    layer = SpecAugment(seed=3)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(layer(ONES)), ONES)
    first, second = masked(), masked()
    np.testing.assert_array_equal(first, second)
    again = keras.ops.convert_to_numpy(layer(ONES, mask=MASK, training=True)) == 0
    np.testing.assert_array_equal(first, again)
    another = keras.ops.convert_to_numpy(layer(ONES, mask=MASK, training=True)) == 0
    assert (again != another).any()


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="`time_masks` must be a non-negative integer"):
        SpecAugment(time_masks=-1)
    with pytest.raises(ValueError, match="`time_share` must be in"):
        SpecAugment(time_share=1.5)
