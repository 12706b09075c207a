"""Splitting of a batch across CPU cores."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if keras.backend.backend() != "tensorflow":
    pytest.skip("only TensorFlow splits batches", allow_module_level=True)

from keras_seq.cluster.tensorflow_cores import split_batch


@given(st.integers(1, 9), st.integers(1, 5))
@settings(deadline=None, max_examples=100)
def test_every_row_is_in_one_part_and_nothing_but_padding_is_cut(rows, count):
    weights = np.arange(rows, dtype=np.float32)
    ids = np.arange(rows * 3, dtype=np.int32).reshape(rows, 3)
    batch = {"source": ids}, {"logits": ids + 1, "attention": ids[:, :, None]}, weights
    parts = split_batch(batch, count)
    assert len(parts) == min(count, rows)
    sizes = [len(part[2]) for part in parts]
    assert min(sizes) >= 1 and max(sizes) - min(sizes) <= 1
    for path in ((0, "source"), (1, "logits"), (1, "attention")):
        array, arrays = batch[path[0]][path[1]], [part[path[0]][path[1]] for part in parts]
        np.testing.assert_array_equal(np.concatenate(arrays), array)
    np.testing.assert_array_equal(np.concatenate([part[2] for part in parts]), weights)


@pytest.mark.parametrize(("rows", "sizes"), [(5, [1, 2, 2]), (2, [1, 1]), (1, [1])])
def test_label_rows_are_split_evenly_in_their_original_order(rows, sizes):
    inputs = {"source": np.full((rows, 4), 3, np.int32)}
    parts = split_batch((inputs, np.arange(rows), np.arange(rows, dtype=np.float32)), 3)
    assert sorted(len(part[2]) for part in parts) == sizes
    assert np.concatenate([part[1] for part in parts]).tolist() == [*range(rows)]
    assert all(part[0]["source"].shape[1] == 4 for part in parts)


def test_tensors_are_split_like_arrays():
    tensors = keras.ops.reshape(keras.ops.arange(6), (3, 2)), keras.ops.arange(3)
    first, second = split_batch(tensors, 2)
    assert [keras.ops.convert_to_numpy(part).tolist() for part in first] == [[[0, 1]], [0]]
    assert keras.ops.convert_to_numpy(second[1]).tolist() == [1, 2]
