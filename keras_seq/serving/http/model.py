"""Loads a version of a SavedModel into a session, as model servers do."""

from __future__ import annotations

import contextlib
import logging
import math
import queue
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2

from keras_seq.operating_system import usable_cores
from keras_seq.serving.graph_file import time_limit
from keras_seq.serving.graph_file.operations import check_trusted
from keras_seq.serving.graph_file.signatures import Signature, TensorInfo, read_signatures
from keras_seq.serving.http.errors import TOO_SLOW, RequestError
from keras_seq.serving.http.tensors import NUMPY_TYPES
from keras_seq.serving.http.text_libraries import TEXT_LIBRARIES, text_library
from keras_seq.serving.http.versions import read_record, recorded_languages
from keras_seq.text import InputError

# Maximum length of a quoted TensorFlow error. The end of a long message only names graph nodes.
_MAX_MESSAGE = 300
# Maximum number of values of an input in the warm-up.
_MAX_ROW_VALUES = 1 << 22
# Types and ranks of the inputs of a model that takes recordings.
_SOUNDS = {"samples": ("DT_FLOAT", 2), "lengths": ("DT_INT32", 1)}
# Inputs of a model that takes two strings a row.
_TEXTS = ({"text", "features"}, {"text", "target_language"})


class ModelError(Exception):
    """Error in loading a version of a model. The message is one line."""


class LoadedModel:
    """A loaded version of a SavedModel.

    Model servers use a session instead of `tf.saved_model.load`: a session loads the variables by
    name, prunes the graph to the outputs of a signature, and is thread-safe. `check_trusted` must
    accept the graph, unless `trust` is True.

    A search consists of many small operations, and distributing them over several threads would
    slow the search down. So each run has one thread for its operations, and up to `threads` runs
    use the cores in parallel. If there are more cores than runs, each operation is also parallel.

    Raises ModelError if the SavedModel cannot be loaded, or `serving_default` does not take text.
    """

    def __init__(self, path: Path, version: int, threads: int = 1, *, trust: bool = False) -> None:
        if not trust:
            _check_file(path)
        for name in TEXT_LIBRARIES:
            tf.load_op_library(text_library(name))
        self.version = version
        # Samples per second of a model that takes recordings, if its export says so.
        self.sample_rate = _sample_rate(path)
        self.languages = recorded_languages(path)
        self._trust = trust
        self._users = 0
        self._retired = False
        graph = tf.Graph()
        cores = max(1, usable_cores() // threads)
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=cores)
        if not trust:
            config.operation_timeout_in_ms = 1000 * time_limit.seconds_for(0)
        # Give each run its own thread pool, because runs in a shared pool wait for one another.
        self._pools: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for number in range(threads):
            config.session_inter_op_thread_pool.add(num_threads=1)
            self._pools.put(number)
        self._session: Any = tf.compat.v1.Session(graph=graph, config=config)
        try:
            with graph.as_default(), _without_deprecations():
                loaded = tf.compat.v1.saved_model.load(self._session, ["serve"], str(path))
            definitions = loaded.signature_def
            self.definitions = {name: _described(definitions[name]) for name in definitions}
            # Skip definitions without inputs, such as `__saved_model_init_op`.
            self.signatures = {
                name: _signature(definitions[name])
                for name in definitions
                if definitions[name].inputs
            }
            _check_signatures(self.signatures)
            self._check_dtypes(graph)
            # `make_callable` resolves the names of inputs and outputs once, not in each run.
            self._functions = {
                name: self._session.make_callable(
                    [info.name for info in signature.outputs.values()],
                    [info.name for info in signature.inputs.values()],
                    accept_options=True,
                )
                for name, signature in self.signatures.items()
            }
            self._warm_up()
        # TensorFlow raises exceptions of many types for a damaged model.
        except Exception as error:
            self._session.close()
            if isinstance(error, ModelError):
                raise
            if isinstance(error, tf.errors.DeadlineExceededError):
                raise ModelError(time_limit.ERROR.format(time_limit.seconds_for(0))) from None
            raise ModelError(f"not a SavedModel that can be served: {_line(error)}") from None

    def _warm_up(self) -> None:
        """Runs each signature once, because TensorFlow optimizes its graph in the first run."""
        for name, signature in self.signatures.items():
            inputs = {key: _one_row(info) for key, info in signature.inputs.items()}
            try:
                self.run(name, inputs)
            except RequestError as error:
                # Other signatures may refuse so small an input, such as a piece of a stream.
                if name == "serving_default" or error.code == TOO_SLOW:
                    raise

    def run(self, name: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs a signature on arrays with a leading batch axis. The method is thread-safe.

        Returns the outputs in the order of the signature. Raises RequestError if the model rejects
        the inputs.
        """
        feeds = [inputs[key] for key in self.signatures[name].inputs]
        rows = len(feeds[0]) if feeds[0].ndim else 1
        seconds = 0 if self._trust else time_limit.seconds_for(rows)
        pool = self._pools.get()
        options = tf.compat.v1.RunOptions(inter_op_thread_pool=pool, timeout_in_ms=1000 * seconds)
        try:
            outputs = self._functions[name](*feeds, options=options)
        except (
            tf.errors.InvalidArgumentError,
            tf.errors.OutOfRangeError,
            tf.errors.FailedPreconditionError,
            tf.errors.UnimplementedError,
        ) as error:
            raise RequestError(f"the model rejects this input: {_line(error)}") from None
        except tf.errors.DeadlineExceededError:
            message = f"the model {time_limit.ERROR.format(seconds)}"
            raise RequestError(message, TOO_SLOW) from None
        except tf.errors.ResourceExhaustedError:
            raise RequestError("out of memory: send fewer or shorter rows", 429) from None
        finally:
            self._pools.put(pool)
        return dict(zip(self.signatures[name].outputs, outputs, strict=True))

    def check_languages(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Raises RequestError if a row has a target language that the model does not know."""
        known = {name.encode() for name in self.languages}
        rows = inputs.get("target_language", np.zeros(0, object)).tolist()
        for name in rows if known else ():
            if name not in known:
                raise RequestError(
                    f"input target_language: received {name.decode('utf-8', 'replace')[:60]!r}, "
                    f"expected one of {', '.join(self.languages)}"[:_MAX_MESSAGE]
                )

    def hold(self) -> None:
        """Keeps the model loaded until `release` is called."""
        self._users += 1

    def release(self) -> None:
        """Undoes one call of `hold`. The last release of a retired model frees the model."""
        self._users -= 1
        self._close_if_done()

    def retire(self) -> None:
        """Frees the model when no request uses it anymore."""
        self._retired = True
        self._close_if_done()

    @property
    def closed(self) -> bool:
        """True if the model has been freed."""
        return self._session is None

    def _close_if_done(self) -> None:
        if self._retired and not self._users and self._session is not None:
            self._functions.clear()
            self._session.close()
            self._session = None

    def _check_dtypes(self, graph: Any) -> None:
        """Raises ModelError if a tensor of the graph has another type than in a signature."""
        for signature in self.signatures.values():
            for name, info in (*signature.inputs.items(), *signature.outputs.items()):
                found = types_pb2.DataType.Name(
                    graph.get_tensor_by_name(info.name).dtype.base_dtype.as_datatype_enum
                )
                if found != info.dtype:
                    raise ModelError(
                        f"damaged: tensor {name[:60]!a} is {found}, expected {info.dtype}"
                    )


def _check_file(path: Path) -> None:
    """Checks the graph and the signatures in the file of a SavedModel before it is loaded."""
    try:
        check_trusted(path)
        signatures = read_signatures(path)
    except InputError as error:
        # Remove the directory from the message, because the caller adds the directory.
        message = str(error).removeprefix(f"{path}: ").removeprefix(f"{path}/")
        raise ModelError(message) from None
    signatures = {name: value for name, value in signatures.items() if value.inputs}
    _check_signatures(signatures)
    for signature in signatures.values():
        for name, info in signature.inputs.items():
            # The warm-up makes a row of each input.
            if math.prod(size or 1 for size in info.shape or ()) > _MAX_ROW_VALUES:
                raise ModelError(
                    f"input {name[:60]!a} has the shape {str(info.shape)[:60]}, expected at most "
                    f"{_MAX_ROW_VALUES:,} values a row"
                )


def _check_signatures(signatures: Mapping[str, Signature]) -> None:
    """Raises ModelError if `serving_default` takes neither text nor recordings."""
    names = ascii(", ".join(sorted(signatures))[:_MAX_MESSAGE])[1:-1] or "none"
    signature = signatures.get("serving_default")
    if signature is None:
        raise ModelError(f"no signature serving_default; its signatures: {names}")
    ranks = {k: (v.dtype, len(v.shape or ())) for k, v in signature.inputs.items()}
    if ranks == _SOUNDS:
        return
    has_two = set(signature.inputs) in _TEXTS
    for name, info in signature.inputs.items():
        is_text = info.dtype == "DT_STRING" and info.shape == (None,)
        if not is_text or (len(signature.inputs) > 1 and not has_two):
            raise ModelError(
                "serving_default must take one input, text of shape [?], text and features, "
                "text and target_language, or samples and lengths; "
                f"it takes {name[:60]!a}: {info.dtype} {str(info.shape)[:60]}"
            )


def _sample_rate(path: Path) -> int | None:
    """Reads the sampling rate in the record of an export; None if there is none."""
    rate = read_record(path).get("sample_rate")
    return rate if type(rate) is int and 1000 <= rate <= 192_000 else None


@contextlib.contextmanager
def _without_deprecations() -> Iterator[None]:
    """Silences TensorFlow's deprecation warnings about the TensorFlow 1 functions used here."""
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _signature(definition: Any) -> Signature:
    return Signature(
        {name: _tensor_info(tensor) for name, tensor in definition.inputs.items()},
        {name: _tensor_info(tensor) for name, tensor in definition.outputs.items()},
    )


def _described(definition: Any) -> dict[str, Any]:
    """Converts a signature to the format of TensorFlow Serving's metadata response."""
    return {
        "inputs": {name: _described_tensor(value) for name, value in definition.inputs.items()},
        "outputs": {name: _described_tensor(value) for name, value in definition.outputs.items()},
        "method_name": definition.method_name,
    }


def _described_tensor(tensor: Any) -> dict[str, Any]:
    shape = tensor.tensor_shape
    axes = [{"size": str(axis.size), "name": axis.name} for axis in shape.dim]
    return {
        "dtype": types_pb2.DataType.Name(tensor.dtype),
        "tensor_shape": {"dim": axes, "unknown_rank": shape.unknown_rank},
        "name": tensor.name,
    }


def _tensor_info(tensor: Any) -> TensorInfo:
    dtype = types_pb2.DataType.Name(tensor.dtype)
    if dtype not in NUMPY_TYPES:
        raise ModelError(f"a tensor of type {dtype}, which has no JSON form")
    shape = tensor.tensor_shape
    sizes = tuple(None if axis.size < 0 else axis.size for axis in shape.dim)
    return TensorInfo(dtype, None if shape.unknown_rank else sizes, tensor.name)


def _one_row(info: TensorInfo) -> np.ndarray:
    shape = [1 if size is None else size for size in info.shape or (1,)]
    if info.dtype == "DT_STRING":
        return np.full(shape, b"", object)
    return np.zeros(shape, NUMPY_TYPES[info.dtype])


def _line(error: Exception) -> str:
    """Returns the first line of an error message, at most `_MAX_MESSAGE` characters."""
    message = str(getattr(error, "message", None) or error).strip() or type(error).__name__
    return message.split("\n")[0][:_MAX_MESSAGE]
