"""A session of TensorFlow's C library that runs a SavedModel."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_seq.serving.c_library import LibraryError, Output, Pointer, TimeLimitError, library
from keras_seq.serving.graph_file import time_limit
from keras_seq.serving.graph_file.signatures import Signature, TensorInfo, dtype_name
from keras_seq.text import InputError
from keras_seq.text.protobuf import field

# Serialized `ConfigProto`: graph_options {rewrite_options {meta_optimizer_iterations: ONE}}. A
# second pass of the graph optimizers would take 25 % of the time until the first answer, and would
# not make later answers faster.
_CONFIG = b"\x52\x04\x52\x02\x60\x01"
# Field numbers of the time limit in `RunOptions` and in `ConfigProto`, which limits loading, too.
_RUN_TIMEOUT_MS = 2
_TIMEOUT_MS = 11


class CSession:
    """A SavedModel loaded into a TensorFlow session. The class is thread-safe.

    As in a model server, the session loads the variables by name and prunes the graph to the
    requested outputs. `keras_seq.process.threads.configure_threads` sets the number of threads.

    Args:
        version: Directory of the SavedModel.
        trust: Boolean, whether runs have no time limit.

    Raises:
        InputError: The SavedModel cannot be loaded.
    """

    def __init__(self, version: Path, *, trust: bool = False) -> None:
        self._trust = trust
        self._graph: Any = None
        self._session: Any = None
        self._version = version
        self._library = lib = library()
        self._graph = lib.new_graph()
        options = lib.new_options()
        tags = (ctypes.c_char_p * 1)(b"serve")
        try:
            config = _CONFIG
            if not trust:
                config += field(_TIMEOUT_MS, 1000 * time_limit.seconds_for(0))
            lib.set_config(options, config, len(config))
            self._session = lib.load_session(
                *(options, None, str(version).encode(), tags, 1, self._graph, None)
            )
        except TimeLimitError:
            raise self._too_slow(0) from None
        except LibraryError as error:
            raise InputError(f"{version}: damaged: {error}") from None
        finally:
            lib.delete_options(options)

    def run(
        self, signature: Signature, texts: Mapping[str, Sequence[bytes]]
    ) -> dict[str, list[Any]]:
        """Runs a signature whose inputs are UTF-8 text. Returns a flat list for each output.

        Raises InputError if the run fails or an output differs from the signature.
        """
        lib = self._library
        count = len(signature.inputs)
        feeds = [self._output(info.name) for info in signature.inputs.values()]
        fetches = [self._output(info.name) for info in signature.outputs.values()]
        results = (Pointer * len(fetches))()
        rows = max(map(len, texts.values()))
        options = (
            b"" if self._trust else field(_RUN_TIMEOUT_MS, 1000 * time_limit.seconds_for(rows))
        )
        buffer = lib.new_buffer(options, len(options))
        tensors = [lib.strings(texts[name]) for name in signature.inputs]
        try:
            lib.run(
                *(self._session, buffer),
                *((Output * count)(*feeds), (Pointer * count)(*tensors), count),
                *((Output * len(fetches))(*fetches), results, len(fetches)),
                *(None, 0, None),
            )
            for (name, info), result in zip(signature.outputs.items(), results, strict=True):
                self._check(name, info, result)
            values = [lib.values(result) for result in results]
        except TimeLimitError:
            raise self._too_slow(rows) from None
        except LibraryError as error:
            raise InputError(f"{self._version}: cannot be run: {error}") from None
        finally:
            lib.delete_buffer(buffer)
            for name, tensor in zip(signature.inputs, tensors, strict=True):
                lib.delete_strings(tensor, len(texts[name]))
            for result in results:
                if result:
                    lib.delete_tensor(result)
        return dict(zip(signature.outputs, values, strict=True))

    def _too_slow(self, rows: int) -> InputError:
        limit = time_limit.seconds_for(rows)
        advice = "use --trust if you know who made it"
        return InputError(f"{self._version}: {time_limit.ERROR.format(limit)}; {advice}")

    def _check(self, name: str, expected: TensorInfo, tensor: Any) -> None:
        """Raises InputError if the tensor of an output differs from the signature."""
        lib = self._library
        dtype = dtype_name(lib.dtype(tensor))
        shape = [lib.dimension(tensor, axis) for axis in range(lib.rank(tensor))]
        sizes = shape if expected.shape is None else expected.shape
        fits = len(sizes) == len(shape) and all(
            known in (None, size) for known, size in zip(sizes, shape, strict=True)
        )
        if dtype != expected.dtype or not fits:
            raise InputError(
                f"{self._version}: damaged: output {name[:60]!a} is {dtype} {shape}, expected "
                f"{expected.dtype} {['?' if size is None else size for size in sizes]}"
            )

    def _output(self, name: str) -> Output:
        node, _, index = name.partition(":")
        if not (index.isascii() and index.isdigit() and len(index) <= 4):
            raise InputError(f"{self._version}: damaged: {name[:60]!a} is not the name of a tensor")
        operation = self._library.operation(self._graph, node.encode())
        if not operation:
            raise InputError(f"{self._version}: damaged: the graph has no {name[:60]!a}")
        return Output(operation, int(index))

    def __del__(self) -> None:
        if self._session is not None:
            self._library.delete_session(self._session)
        if self._graph is not None:
            self._library.delete_graph(self._graph)
