"""Bindings to TensorFlow's C library. The library loads in 0.5 s, the Python package in 3 s."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keras_seq.operating_system import shared_library
from keras_seq.serving.http.text_libraries import TEXT_LIBRARIES, text_library
from keras_seq.text import InputError

Pointer = ctypes.c_void_p
# Values of the C enumeration `TF_DataType`.
_STRING = 7
_NUMBERS: dict[int, Any] = {1: ctypes.c_float, 10: ctypes.c_bool}
# Value of the C enumeration `TF_Code`.
_DEADLINE_EXCEEDED = 4
# Size in bytes of `TF_TString`, the element type of string tensors.
STRING_BYTES = 24


class LibraryError(Exception):
    """Failed call of the C library. The message is one line of at most 300 characters."""


class TimeLimitError(LibraryError):
    """A run took longer than its options allow."""


class Output(ctypes.Structure):
    """The C struct `TF_Output`, which identifies an output of an operation."""

    _fields_ = [("operation", Pointer), ("index", ctypes.c_int)]


@functools.cache
def library() -> Library:
    """Returns TensorFlow's C library with the operations of tensorflow-text, loaded only once."""
    return Library()


class Library:
    """Functions of TensorFlow's C API. Call `library()` instead of the constructor."""

    def __init__(self) -> None:
        # Locate the package without importing it, because the import takes seconds.
        spec = importlib.util.find_spec("tensorflow")
        if spec is None or spec.origin is None:
            raise InputError("tensorflow is needed: python -m pip install tensorflow")
        try:
            self._libraries = [
                ctypes.CDLL(str(Path(spec.origin).with_name(name)), ctypes.RTLD_GLOBAL)
                for name in (
                    shared_library("tensorflow_framework", 2),
                    shared_library("tensorflow_cc", 2),
                )
            ]
        except OSError as error:
            raise InputError(f"TensorFlow's C library cannot be loaded: {error}") from None
        text, number, size = ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t
        outputs, tensors = ctypes.POINTER(Output), ctypes.POINTER(Pointer)
        define = self._define
        self._new_status = define("TF_NewStatus", Pointer)
        self._delete_status = define("TF_DeleteStatus", None, Pointer)
        self._code = define("TF_GetCode", number, Pointer)
        self._message = define("TF_Message", text, Pointer)

        self.new_graph = define("TF_NewGraph", Pointer)
        self.delete_graph = define("TF_DeleteGraph", None, Pointer)
        self.operation = define("TF_GraphOperationByName", Pointer, Pointer, text)
        self.new_buffer = define("TF_NewBufferFromString", Pointer, text, size)
        self.delete_buffer = define("TF_DeleteBuffer", None, Pointer)
        self.new_options = define("TF_NewSessionOptions", Pointer)
        self.set_config = self._checked("TF_SetConfig", None, Pointer, text, size)
        self.delete_options = define("TF_DeleteSessionOptions", None, Pointer)
        self.load_session = self._checked(
            "TF_LoadSessionFromSavedModel",
            Pointer,
            *(Pointer, Pointer, text, ctypes.POINTER(text), number, Pointer, Pointer),
        )
        self.delete_session = self._checked("TF_DeleteSession", None, Pointer)
        self.run = self._checked(
            "TF_SessionRun",
            None,
            *(Pointer, Pointer, outputs, tensors, number, outputs, tensors, number),
            *(Pointer, number, Pointer),
        )

        dimensions = ctypes.POINTER(ctypes.c_int64)
        self.new_tensor = define("TF_AllocateTensor", Pointer, number, dimensions, number, size)
        self.delete_tensor = define("TF_DeleteTensor", None, Pointer)
        self.data = define("TF_TensorData", Pointer, Pointer)
        self.rank = define("TF_NumDims", number, Pointer)
        self.dimension = define("TF_Dim", ctypes.c_int64, Pointer, number)
        self.dtype = define("TF_TensorType", number, Pointer)
        self.new_string = define("TF_StringInit", None, Pointer)
        self.set_string = define("TF_StringCopy", None, Pointer, text, size)
        self.string_data = define("TF_StringGetDataPointer", Pointer, Pointer)
        self.string_size = define("TF_StringGetSize", size, Pointer)
        self.delete_string = define("TF_StringDealloc", None, Pointer)

        self._load_text_libraries()

    def _load_text_libraries(self) -> None:
        load = self._checked("TF_LoadLibrary", Pointer, ctypes.c_char_p)
        try:
            for name in TEXT_LIBRARIES:
                load(text_library(name).encode())
        except LibraryError as error:
            raise InputError(f"tensorflow-text does not fit TensorFlow: {error}") from None

    def _define(self, name: str, result_type: Any, *arguments: Any) -> Callable[..., Any]:
        for loaded in reversed(self._libraries):
            if hasattr(loaded, name):
                function = getattr(loaded, name)
                function.restype, function.argtypes = result_type, list(arguments)
                return function
        raise InputError(f"this release of TensorFlow has no {name} in its C library")

    def _checked(self, name: str, result_type: Any, *arguments: Any) -> Callable[..., Any]:
        """Wraps a C function that takes a status. The wrapper raises LibraryError on failure."""
        function = self._define(name, result_type, *arguments, Pointer)

        def call(*values: Any) -> Any:
            status = self._new_status()
            try:
                result = function(*values, status)
                if code := self._code(status):
                    message = self._message(status).decode("utf-8", "replace")
                    kind = TimeLimitError if code == _DEADLINE_EXCEEDED else LibraryError
                    raise kind(message.strip().split("\n")[0][:300])
                return result
            finally:
                self._delete_status(status)

        return call

    def strings(self, values: Sequence[bytes]) -> Any:
        """Creates a 1-D string tensor. Call `delete_strings` to free the tensor."""
        shape = (ctypes.c_int64 * 1)(len(values))
        tensor = self.new_tensor(_STRING, shape, 1, len(values) * STRING_BYTES)
        data = self.data(tensor) or 0
        for i, value in enumerate(values):
            self.new_string(data + i * STRING_BYTES)
            self.set_string(data + i * STRING_BYTES, value, len(value))
        return tensor

    def delete_strings(self, tensor: Any, count: int) -> None:
        data = self.data(tensor) or 0
        for i in range(count):
            self.delete_string(data + i * STRING_BYTES)
        self.delete_tensor(tensor)

    def values(self, tensor: Any) -> list[Any]:
        """Returns the values of a string, float or bool tensor as a flat, row-major list."""
        count = math.prod(self.dimension(tensor, axis) for axis in range(self.rank(tensor)))
        data, dtype = self.data(tensor) or 0, self.dtype(tensor)
        if dtype == _STRING:
            addresses = range(data, data + count * STRING_BYTES, STRING_BYTES)
            return [
                ctypes.string_at(self.string_data(address), self.string_size(address))
                for address in addresses
            ]
        return list((_NUMBERS[dtype] * count).from_address(data)) if count else []
