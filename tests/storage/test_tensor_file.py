"""Tensor files against the safetensors package."""

import hashlib

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from run_helpers import entry, header_file

from keras_seq.storage.checkpoints.tensor_file import (
    TensorFileError,
    read_tensors,
    tensor_spec,
    write_tensors,
)

ARRAYS = {
    "matrix": np.arange(12, dtype=np.float32).reshape(3, 4).T,
    "scalar": np.float32(2.5),
    "empty": np.zeros((0, 5), np.int32),
    "half": np.array([1.5, -2], np.float16),
    "double": np.array([1e300]),
    "flags": np.array([True, False, True]),
    "bytes": np.arange(5, dtype=np.uint8),
    "big endian": np.array([1, 2], ">i4"),
    "naïve/名": np.arange(3),
}


def test_written_tensor_file_is_readable_by_safetensors(tmp_path):
    written = write_tensors(tmp_path / "a.safetensors", ARRAYS)
    content = (tmp_path / "a.safetensors").read_bytes()
    assert (len(content), hashlib.sha256(content).hexdigest()) == written
    found = safetensors.numpy.load(content)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].shape == array.shape


def test_tensor_file_written_by_safetensors_is_read(tmp_path):
    arrays = {name: np.ascontiguousarray(array) for name, array in ARRAYS.items()}
    arrays["scalar"] = np.array(2.5, np.float32)
    safetensors.numpy.save_file(arrays, tmp_path / "a.safetensors", metadata={"format": "np"})
    expected = {name: tensor_spec(array.shape, array.dtype) for name, array in arrays.items()}
    found = read_tensors(tmp_path / "a.safetensors", expected)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        found[name][...] = 0


def test_optimizer_variables_may_have_other_numbers(tmp_path):
    stored = ["optimizer/2/a", "optimizer/10/a", "optimizer/3/b", "layer/0/a"]
    write_tensors(tmp_path / "a", dict(zip(stored, np.arange(4.0), strict=True)))

    def read(*names):
        scalar = tensor_spec((), "float64")
        return read_tensors(tmp_path / "a", dict.fromkeys([*names, "layer/0/a"], scalar))

    found = read("optimizer/0/b", "optimizer/4/a", "optimizer/7/a")
    assert list(found.values()) == [2, 0, 1, 3]
    for wrong in (["optimizer/4/a"], ["optimizer/4/a", "optimizer/7/c"]):
        with pytest.raises(TensorFileError, match="has 'optimizer/"):
            read("optimizer/0/b", *wrong)
    with pytest.raises(TensorFileError, match="has 'layer/0/a'"):
        read_tensors(tmp_path / "a", {"layer/1/a": tensor_spec((), "float64")})


def test_bfloat16_tensor_survives_write_and_read(tmp_path):
    array = np.array([1, 2.5, -3], ml_dtypes.bfloat16)
    write_tensors(tmp_path / "a", {"a": array})
    found = read_tensors(tmp_path / "a", {"a": tensor_spec((3,), "bfloat16")})["a"]
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found.astype("float32"), [1, 2.5, -3])


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"b": entry([2], 0, 8)}, "lacks 'a' and has 'b'"),
        ({}, "lacks 'a'"),
        ({"a": entry([2], 0, 8), "b": entry([0], 8, 8)}, "has 'b', which the model does not"),
        ({"a": entry([10**13], 0, 8)}, r"a is F32 \[10000000000000\], the model has F32 \[2\]"),
        ({"a": entry([2], 0, 8, "F16")}, "a is F16"),
        ({"a": entry([2], 8, 16)}, "overlaps another array or leaves a gap"),
        ({"a": entry([2], 0, 10**15)}, "offsets that do not fit"),
        ({"a": entry([2], -8, 0)}, "gap"),
        ({"a": entry([2], 0.0, 8.0)}, "offsets that do not fit"),
        ({"a": {"dtype": "F32", "shape": [2]}}, "offsets that do not fit"),
        ({"a": 3}, "a is None"),
        ({"a": entry([-2], 0, 8)}, r"a is F32 \[-2\]"),
        ([1], "not a safetensors file"),
        (b"{" * 4000, "not a safetensors file"),
        (b"[" * 4000, "not a safetensors file"),
    ],
)
def test_tensor_file_header_that_does_not_match_the_model_is_refused(tmp_path, header, words):
    path = header_file(tmp_path / "a", header, b"\0" * 8)
    with pytest.raises(TensorFileError, match=words):
        read_tensors(path, {"a": tensor_spec((2,), "float32")})


@pytest.mark.parametrize("length", [2**63, 2**40, 10**6, 9])
def test_wrong_tensor_file_header_length_is_refused(tmp_path, length):
    path = header_file(tmp_path / "a", b"{}", length=length)
    with pytest.raises(TensorFileError):
        read_tensors(path, {"a": tensor_spec((2,), "float32")})


def test_two_arrays_on_the_same_bytes_are_refused(tmp_path):
    header = {"a": entry([2], 0, 8), "b": entry([2], 0, 8)}
    specs = {name: tensor_spec((2,), "float32") for name in "ab"}
    with pytest.raises(TensorFileError, match="overlaps"):
        read_tensors(header_file(tmp_path / "a", header, b"\0" * 16), specs)


def test_tensor_file_with_missing_or_extra_data_is_refused(tmp_path):
    for size in (0, 7, 9):
        path = header_file(tmp_path / "a", {"a": entry([2], 0, 8)}, b"\0" * size)
        with pytest.raises(TensorFileError, match="bytes, expected"):
            read_tensors(path, {"a": tensor_spec((2,), "float32")})
