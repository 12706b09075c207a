"""Runs a SavedModel through TensorFlow's C API, as a stock model server does.

The setup copies the server: the SentencePiece and WordPiece operations of tensorflow-text are
registered, XLA is disabled, the SavedModel is loaded with the tag `serve`, and signatures are
called by the names of their inputs and outputs. A session is stricter than
`tf.saved_model.load`, which also accepts some models that a server rejects.

* `StockSession(directory)` runs in this process and does not import TensorFlow.
* `StockProcess(directory)` runs in a separate process that cannot import any package.
* As a script, this file translates the lines of stdin in one batch:
  `python tests/stock_server.py served/ende/1 < lines`

This is not the server itself: REST, gRPC and batching are not covered.
"""

from __future__ import annotations

import argparse
import base64
import ctypes
import importlib.util
import itertools
import json
import math
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

Pointer = ctypes.c_void_p
STRING = 7
STRING_BYTES = 24
TEXT_OPERATIONS = (
    "_sentencepiece_tokenizer.so",
    "_normalize_ops.so",
    "_fast_wordpiece_tokenizer.so",
)
# Data types used in our signatures: TF_DataType number of the C API -> format code of `struct`.
FORMATS = {1: "f", 2: "d", 3: "i", 9: "q", 10: "?"}


class ServerError(Exception):
    """An error reported by the TensorFlow runtime."""


class Tensor(NamedTuple):
    """A tensor as a shape and values in row-major order; string values are bytes."""

    shape: tuple[int, ...]
    values: list

    @classmethod
    def row(cls, values: Sequence) -> Tensor:
        """Creates a one-dimensional tensor; text is encoded as UTF-8."""
        return cls((len(values),), [v.encode() if isinstance(v, str) else v for v in values])

    def rows(self) -> list:
        """Splits the tensor along its first axis; each row is a value or a flat list of values."""
        if len(self.shape) == 1:
            return self.values
        size = math.prod(self.shape[1:])
        return [self.values[i * size : (i + 1) * size] for i in range(self.shape[0])]


class TensorInfo(NamedTuple):
    name: str
    dtype: int


class Signature(NamedTuple):
    inputs: dict[str, TensorInfo]
    outputs: dict[str, TensorInfo]


class _Buffer(ctypes.Structure):
    _fields_ = [("data", Pointer), ("length", ctypes.c_size_t), ("deallocator", Pointer)]


class _Output(ctypes.Structure):
    _fields_ = [("operation", Pointer), ("index", ctypes.c_int)]


def _package(name: str) -> Path:
    """Finds the folder of a package without importing the package."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ServerError(f"the package {name} is not installed")
    return Path(spec.origin).parent


def default_libraries() -> tuple[Path, Path]:
    """Returns TensorFlow's folder and the folder of tensorflow-text's operations."""
    return _package("tensorflow"), _package("tensorflow_text") / "python" / "ops"


def libraries_in(packages: Path) -> tuple[Path, Path]:
    """Returns the same folders for the packages of another environment."""
    return packages / "tensorflow", packages / "tensorflow_text" / "python" / "ops"


class _Api:
    """Typed bindings for the functions of the C API that this module uses."""

    def __init__(self, tensorflow: Path) -> None:
        self._libraries = [
            ctypes.CDLL(str(tensorflow / f"libtensorflow_{part}.so.2"), mode=ctypes.RTLD_GLOBAL)
            for part in ("framework", "cc")
        ]
        text, number, size = ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t
        outputs, tensors = ctypes.POINTER(_Output), ctypes.POINTER(Pointer)
        define = self._define
        self.new_status = define("TF_NewStatus", Pointer)
        self.delete_status = define("TF_DeleteStatus", None, Pointer)
        self.code = define("TF_GetCode", number, Pointer)
        self.message = define("TF_Message", text, Pointer)
        self.new_buffer = define("TF_NewBuffer", ctypes.POINTER(_Buffer))
        self.delete_buffer = define("TF_DeleteBuffer", None, ctypes.POINTER(_Buffer))
        self.new_graph = define("TF_NewGraph", Pointer)
        self.delete_graph = define("TF_DeleteGraph", None, Pointer)
        self.new_options = define("TF_NewSessionOptions", Pointer)
        self.delete_options = define("TF_DeleteSessionOptions", None, Pointer)
        self.load_library = define("TF_LoadLibrary", Pointer, text, Pointer)
        # A C++ function, hence the mangled name. The model server calls it before anything else.
        self.disable_xla = define("_ZN10tensorflow21DisableXlaCompilationEv", None)
        self.load_session = define(
            "TF_LoadSessionFromSavedModel",
            Pointer,
            *(Pointer, Pointer, text, ctypes.POINTER(text), number, Pointer),
            *(ctypes.POINTER(_Buffer), Pointer),
        )
        self.close_session = define("TF_CloseSession", None, Pointer, Pointer)
        self.delete_session = define("TF_DeleteSession", None, Pointer, Pointer)
        self.operation = define("TF_GraphOperationByName", Pointer, Pointer, text)
        self.run = define(
            "TF_SessionRun",
            None,
            *(Pointer, Pointer, outputs, tensors, number, outputs, tensors, number),
            *(Pointer, number, Pointer, Pointer),
        )
        dimensions = ctypes.POINTER(ctypes.c_int64)
        self.new_tensor = define("TF_AllocateTensor", Pointer, number, dimensions, number, size)
        self.delete_tensor = define("TF_DeleteTensor", None, Pointer)
        self.data = define("TF_TensorData", Pointer, Pointer)
        self.bytes = define("TF_TensorByteSize", size, Pointer)
        self.dtype = define("TF_TensorType", number, Pointer)
        self.rank = define("TF_NumDims", number, Pointer)
        self.dimension = define("TF_Dim", ctypes.c_int64, Pointer, number)
        self.new_string = define("TF_StringInit", None, Pointer)
        self.set_string = define("TF_StringCopy", None, Pointer, text, size)
        self.string_data = define("TF_StringGetDataPointer", Pointer, Pointer)
        self.string_size = define("TF_StringGetSize", size, Pointer)
        self.delete_string = define("TF_StringDealloc", None, Pointer)

    def _define(self, name: str, result: Any, *arguments: Any) -> Any:
        for library in reversed(self._libraries):
            if hasattr(library, name):
                function = getattr(library, name)
                function.restype, function.argtypes = result, list(arguments)
                return function
        raise ServerError(f"this TensorFlow does not export {name}")

    def checked(self, call: Any, *arguments: Any) -> Any:
        """Calls a C function whose last argument is a status; raises `ServerError` if it fails."""
        status = self.new_status()
        try:
            result = call(*arguments, status)
            if self.code(status):
                raise ServerError(self.message(status).decode(errors="replace"))
            return result
        finally:
            self.delete_status(status)

    def to_c(self, tensor: Tensor, dtype: int) -> Any:
        count = math.prod(tensor.shape)
        if count != len(tensor.values):
            raise ServerError(f"shape {tensor.shape} with {len(tensor.values)} values")
        width = STRING_BYTES if dtype == STRING else struct.calcsize(FORMATS[dtype])
        shape = (ctypes.c_int64 * len(tensor.shape))(*tensor.shape)
        made = self.new_tensor(dtype, shape, len(tensor.shape), count * width)
        data = self.data(made) or 0
        if dtype == STRING:
            for i, value in enumerate(tensor.values):
                self.new_string(data + i * STRING_BYTES)
                self.set_string(data + i * STRING_BYTES, value, len(value))
        elif count:
            ctypes.memmove(
                data, struct.pack(f"={count}{FORMATS[dtype]}", *tensor.values), count * width
            )
        return made

    def delete_input(self, made: Any, dtype: int, count: int) -> None:
        # The caller that allocated a string tensor must also free its strings.
        if dtype == STRING:
            data = self.data(made) or 0
            for i in range(count):
                self.delete_string(data + i * STRING_BYTES)
        self.delete_tensor(made)

    def from_c(self, made: Any) -> Tensor:
        shape = tuple(self.dimension(made, i) for i in range(self.rank(made)))
        count, data, dtype = math.prod(shape), self.data(made) or 0, self.dtype(made)
        if dtype == STRING:
            places = range(data, data + count * STRING_BYTES, STRING_BYTES)
            return Tensor(
                shape, [ctypes.string_at(self.string_data(p), self.string_size(p)) for p in places]
            )
        content = ctypes.string_at(data, self.bytes(made)) if count else b""
        return Tensor(shape, list(struct.unpack(f"={count}{FORMATS[dtype]}", content)))


class StockSession:
    """A loaded SavedModel.

    Args:
        directory: The version's directory.
        tensorflow: Folder of TensorFlow's libraries. None uses the TensorFlow and
            tensorflow-text that are installed here.
        operations: Folder of tensorflow-text's operations. None loads no operations.
    """

    def __init__(
        self, directory: Path, *, tensorflow: Path | None = None, operations: Path | None = None
    ) -> None:
        if tensorflow is None:
            tensorflow, operations = default_libraries()
        self._api = api = _Api(tensorflow)
        if operations is not None:
            for name in TEXT_OPERATIONS:
                api.checked(api.load_library, str(operations / name).encode())
        api.disable_xla()
        start = time.perf_counter()
        self._graph, options, meta = api.new_graph(), api.new_options(), api.new_buffer()
        try:
            self._session = api.checked(
                api.load_session,
                *(options, None, str(directory).encode(), (ctypes.c_char_p * 1)(b"serve"), 1),
                *(self._graph, meta),
            )
            content = ctypes.string_at(meta.contents.data, meta.contents.length)
        finally:
            api.delete_options(options)
            api.delete_buffer(meta)
        self.load_seconds = time.perf_counter() - start
        self.signatures = read_signatures(content)

    def run(self, signature: str, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Calls a signature. This method is thread-safe."""
        api, called = self._api, self.signatures[signature]
        if set(inputs) != set(called.inputs):
            raise ServerError(f"inputs {sorted(inputs)}, expected {sorted(called.inputs)}")
        feeds = (_Output * len(inputs))(
            *(self._output(called.inputs[name].name) for name in inputs)
        )
        fetches = (_Output * len(called.outputs))(
            *(self._output(info.name) for info in called.outputs.values())
        )
        given = [(called.inputs[name].dtype, tensor) for name, tensor in inputs.items()]
        fed = (Pointer * len(given))(*(api.to_c(tensor, dtype) for dtype, tensor in given))
        found = (Pointer * len(fetches))()
        try:
            api.checked(
                api.run,
                *(self._session, None, feeds, fed, len(feeds), fetches, found, len(fetches)),
                *(None, 0, None),
            )
            return {
                name: api.from_c(made) for name, made in zip(called.outputs, found, strict=True)
            }
        finally:
            for made, (dtype, tensor) in zip(fed, given, strict=True):
                api.delete_input(made, dtype, len(tensor.values))
            for made in found:
                if made:
                    api.delete_tensor(made)

    def translate(self, lines: Sequence[str | bytes]) -> list[str]:
        """Returns the best translation of each line, from `serving_default`."""
        answer = self.run("serving_default", {"text": Tensor.row(lines)})
        return [text.decode() for text in answer["translation"].values]

    def close(self) -> None:
        self._api.checked(self._api.close_session, self._session)
        self._api.checked(self._api.delete_session, self._session)
        self._api.delete_graph(self._graph)

    def _output(self, name: str) -> _Output:
        node, _, index = name.partition(":")
        operation = self._api.operation(self._graph, node.encode())
        if not operation:
            raise ServerError(f"the graph has no {name}")
        return _Output(operation, int(index))


def read_signatures(meta_graph: bytes) -> dict[str, Signature]:
    """Parses the signatures of a serialized MetaGraphDef from the protobuf wire format.

    Field numbers: MetaGraphDef 5 = map of SignatureDef; SignatureDef 1 = map of inputs, 2 = map of
    outputs; TensorInfo 1 = name, 2 = dtype; map entry 1 = key, 2 = value.
    """

    def entries(message: bytes, number: int) -> Iterator[tuple[str, bytes]]:
        for found, value in _fields(message):
            if found == number:
                entry = dict(_fields(value))
                yield entry[1].decode(), entry.get(2, b"")

    def tensors(signature: bytes, number: int) -> dict[str, TensorInfo]:
        infos = {key: dict(_fields(value)) for key, value in entries(signature, number)}
        return {key: TensorInfo(info[1].decode(), info[2]) for key, info in sorted(infos.items())}

    return {
        name: Signature(tensors(value, 1), tensors(value, 2))
        for name, value in entries(meta_graph, 5)
        # The initializer op that restores the variables is also listed as a signature.
        if not name.startswith("__")
    }


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yields each field of a message as its number and its value, an integer or bytes."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = 0
        for shift in itertools.count(0, 7):
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise AssertionError

    while at < len(message):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
            continue
        length = varint() if kind == 2 else {1: 8, 5: 4}[kind]
        yield number, message[at : at + length]
        at += length


# A separate process that answers each line of JSON with a line of JSON.


class StockProcess:
    """A `StockSession` in a new process that has only Python's standard library.

    Args:
        directory: The version's directory.
        operations: Whether the server has tensorflow-text's operations.
        libraries: Folders of TensorFlow's libraries and of tensorflow-text's operations; those
            installed here by default.

    Raises:
        ServerError: If the SavedModel cannot be loaded.
    """

    def __init__(
        self,
        directory: Path,
        *,
        operations: bool = True,
        libraries: tuple[Path, Path] | None = None,
    ) -> None:
        tensorflow, library = libraries or default_libraries()
        # -I and -S turn off site-packages, environment variables and the script's import folder.
        command = [
            sys.executable,
            "-I",
            "-S",
            __file__,
            str(directory),
            f"--tensorflow={tensorflow}",
        ]
        command += [f"--operations={library}"] if operations else []
        self._process = subprocess.Popen(
            [*command, "--answer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        self._turn = threading.Lock()
        try:
            hello = self._read()
        except ServerError:
            self.close()
            raise
        self.load_seconds: float = hello["load_seconds"]
        self.signatures = {
            name: Signature(*({k: TensorInfo(*v) for k, v in part.items()} for part in parts))
            for name, parts in hello["signatures"].items()
        }

    def __enter__(self) -> StockProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run_all(
        self, requests: Sequence[tuple[str, Mapping[str, Tensor]]], threads: int = 1
    ) -> list[dict[str, Tensor]]:
        """Answers several requests, at most `threads` of them at a time."""
        packed = [
            [signature, {name: _pack(tensor) for name, tensor in inputs.items()}]
            for signature, inputs in requests
        ]
        with self._turn:
            line = json.dumps({"requests": packed, "threads": threads})
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
            answers = self._read()["answers"]
        return [{name: _unpack(tensor) for name, tensor in answer.items()} for answer in answers]

    def run(self, signature: str, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Answers one request."""
        return self.run_all([(signature, inputs)])[0]

    def translate(self, lines: Sequence[str | bytes]) -> list[str]:
        """Returns the best translation of each line, from `serving_default`."""
        answer = self.run("serving_default", {"text": Tensor.row(lines)})
        return [text.decode() for text in answer["translation"].values]

    def close(self) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _read(self) -> dict:
        line = self._process.stdout.readline()
        if not line:
            raise ServerError(f"the process ended with {self._process.wait()}")
        message = json.loads(line)
        if "error" in message:
            raise ServerError(message["error"])
        return message


def _pack(tensor: Tensor) -> list:
    if tensor.values and isinstance(tensor.values[0], bytes):
        return [tensor.shape, [base64.b64encode(value).decode() for value in tensor.values], True]
    return [tensor.shape, tensor.values, False]


def _unpack(packed: list) -> Tensor:
    shape, values, is_text = packed
    return Tensor(
        tuple(shape), [base64.b64decode(value) for value in values] if is_text else values
    )


def _answer(session: StockSession) -> None:
    _say({"load_seconds": session.load_seconds, "signatures": session.signatures})
    for line in sys.stdin.buffer:
        message = json.loads(line)
        requests = [
            (signature, {name: _unpack(tensor) for name, tensor in inputs.items()})
            for signature, inputs in message["requests"]
        ]
        try:
            with ThreadPoolExecutor(message["threads"]) as pool:
                answers = list(pool.map(lambda request: session.run(*request), requests))
        except ServerError as error:
            _say({"error": str(error)})
            continue
        _say({"answers": [{k: _pack(v) for k, v in answer.items()} for answer in answers]})


def _say(message: dict) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--tensorflow", type=Path, help="folder of its libraries")
    parser.add_argument("--operations", type=Path, help="folder of tensorflow-text's operations")
    parser.add_argument("--answer", action="store_true", help="answer lines of JSON")
    arguments = parser.parse_args()
    try:
        session = StockSession(
            arguments.directory, tensorflow=arguments.tensorflow, operations=arguments.operations
        )
        if arguments.answer:
            _answer(session)
        else:
            for line in session.translate(sys.stdin.buffer.read().splitlines()):
                sys.stdout.write(line + "\n")
    except ServerError as error:
        if not arguments.answer:
            sys.exit(str(error))
        _say({"error": str(error)})
        sys.exit(1)


if __name__ == "__main__":
    main()
