"""Errors that mean that memory ran out, as the backends raise them."""

import pytest

from keras_seq.process.memory import is_out_of_memory


class OutOfMemoryError(RuntimeError):
    """Named as the error of torch for GPUs."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate"), True),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory"), True),
        (RuntimeError("shape mismatch"), False),
    ],
)
def test_out_of_memory_is_recognized_on_each_backend(error, expected):
    assert is_out_of_memory(error) is expected
