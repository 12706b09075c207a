"""One version of a SavedModel in a session, as a model server holds it."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import queue
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2

from keras_seq.runtime.threads import usable_cores
from keras_seq.serving.graph_file.operations import check_trusted
from keras_seq.serving.http.signature import (
    NUMPY_TYPES,
    RequestError,
    Signature,
    TensorSpec,
)
from keras_seq.serving.http.text_libraries import TEXT_LIBRARIES
from keras_seq.text import InputError

# Of what TensorFlow says about a failed request; the rest names nodes of the graph.
_LONGEST_MESSAGE = 300


class ModelError(Exception):
    """A version that cannot be served, and why, in one line."""


class LoadedModel:
    """A version that answers.

    In a session and not by `tf.saved_model.load`, because a session is what
    model servers use: it loads the variables by name, prunes the graph to
    what a signature asks for, and is safe to run from many threads.

    Many small operations, as a search has them, lose more by being handed from
    thread to thread than they win: each run keeps to one thread for its
    operations, and runs beside one another use the cores. Where there are more
    cores than runs, those within an operation are shared out.

    Args:
        path: Directory with `saved_model.pb`.
        version: Its number.
        threads: Most runs at the same time.
        trust: Whether to load it whatever its graph contains; else `check_trusted` decides.

    Attributes:
        signatures: What the model takes and gives, by name.
        definitions: The same as TensorFlow Serving's metadata shows it.

    Raises:
        ModelError: It cannot be loaded, or has no signature from text to
            something.
    """

    def __init__(self, path: Path, version: int, threads: int = 1, *, trust: bool = False) -> None:
        if not trust:
            try:
                check_trusted(path)
            except InputError as error:
                # The caller names the directory.
                message = str(error).removeprefix(f"{path}: ").removeprefix(f"{path}/")
                raise ModelError(message) from None
        _register_text_operations()
        self.version = version
        self._users = 0
        self._retired = False
        graph = tf.Graph()
        config = tf.compat.v1.ConfigProto(
            intra_op_parallelism_threads=max(1, usable_cores() // threads)
        )
        # One pool for a run; the one that all share by default would be a queue for them.
        self._pools: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for number in range(threads):
            config.session_inter_op_thread_pool.add(num_threads=1)
            self._pools.put(tf.compat.v1.RunOptions(inter_op_thread_pool=number))
        self._session: Any = tf.compat.v1.Session(graph=graph, config=config)
        try:
            with graph.as_default(), _without_deprecations():
                loaded = tf.compat.v1.saved_model.load(self._session, ["serve"], str(path))
            definitions = loaded.signature_def
            self.definitions = {name: _described(definitions[name]) for name in definitions}
            # One without inputs is the saver's own and no function of the model.
            self.signatures = {
                name: _signature(definitions[name])
                for name in definitions
                if definitions[name].inputs
            }
            self._check()
            self._functions = {name: self._function(definitions[name]) for name in self.signatures}
            self._warm_up()
        except ModelError:
            self._session.close()
            raise
        # Whatever TensorFlow finds wrong, in whichever of its many types: this version is none.
        except Exception as error:
            self._session.close()
            raise ModelError(f"not a SavedModel that can be served: {_line(error)}") from None

    def run(self, name: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs a signature; from any thread, several at a time.

        Args:
            name: Of `signatures`.
            inputs: An array for each input of the signature, rows first.

        Returns:
            An array for each output, in the order of the signature.

        Raises:
            RequestError: The model refuses these inputs.
        """
        feeds = [inputs[key] for key in self.signatures[name].inputs]
        pool = self._pools.get()
        try:
            outputs = self._functions[name](*feeds, options=pool)
        except (
            tf.errors.InvalidArgumentError,
            tf.errors.OutOfRangeError,
            tf.errors.FailedPreconditionError,
            tf.errors.UnimplementedError,
        ) as error:
            raise RequestError(f"the model refuses this input: {_line(error)}") from None
        except tf.errors.ResourceExhaustedError:
            raise RequestError("out of memory: send fewer or shorter rows", 429) from None
        finally:
            self._pools.put(pool)
        return dict(zip(self.signatures[name].outputs, outputs, strict=True))

    def hold(self) -> None:
        """Keeps the model loaded for one more request."""
        self._users += 1

    def release(self) -> None:
        """Ends what `hold` began."""
        self._users -= 1
        self._close_if_done()

    def retire(self) -> None:
        """Frees the model as soon as the last request is answered."""
        self._retired = True
        self._close_if_done()

    @property
    def closed(self) -> bool:
        """Whether the model is freed."""
        return self._session is None

    def _close_if_done(self) -> None:
        if self._retired and not self._users and self._session is not None:
            self._functions.clear()
            self._session.close()
            self._session = None

    def _check(self) -> None:
        names = ", ".join(sorted(self.signatures)) or "none"
        signature = self.signatures.get("serving_default")
        if signature is None:
            raise ModelError(f"no signature serving_default; its signatures: {names}")
        for name, spec in signature.inputs.items():
            if len(signature.inputs) > 1 or spec.dtype != "DT_STRING" or spec.shape != (None,):
                raise ModelError(
                    "serving_default must take one input, text of shape [?]; it takes "
                    f"{name}: {spec.dtype} {spec.shape}"
                )

    def _function(self, definition: Any) -> Any:
        # Strings of bytes in, arrays out; a callable skips the parsing of feeds and fetches.
        return self._session.make_callable(
            [output.name for output in definition.outputs.values()],
            [tensor.name for tensor in definition.inputs.values()],
            accept_options=True,
        )

    def _warm_up(self) -> None:
        """Runs each signature once: the first run of a graph optimizes it."""
        for name, signature in self.signatures.items():
            self.run(name, {key: _one_row(spec) for key, spec in signature.inputs.items()})


def _register_text_operations() -> None:
    """Makes the operations of text that exports use known, and nothing else of tensorflow-text.

    `import tensorflow_text` would do it too, but it imports Keras.
    """
    spec = importlib.util.find_spec("tensorflow_text")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    for name in TEXT_LIBRARIES:
        if folder is None or not (folder / name).exists():
            raise ModelError("tensorflow-text is needed: pip install tensorflow-text")
        tf.load_op_library(str(folder / name))


@contextlib.contextmanager
def _without_deprecations() -> Iterator[None]:
    """Silences what TensorFlow says of its first version's functions, which servers still use."""
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _signature(definition: Any) -> Signature:
    return Signature(
        {name: _spec(tensor) for name, tensor in definition.inputs.items()},
        {name: _spec(tensor) for name, tensor in definition.outputs.items()},
    )


def _described(definition: Any) -> dict[str, Any]:
    """A signature as TensorFlow Serving's metadata shows it."""
    return {
        "inputs": {name: _described_tensor(value) for name, value in definition.inputs.items()},
        "outputs": {name: _described_tensor(value) for name, value in definition.outputs.items()},
        "method_name": definition.method_name,
    }


def _described_tensor(tensor: Any) -> dict[str, Any]:
    shape = tensor.tensor_shape
    return {
        "dtype": types_pb2.DataType.Name(tensor.dtype),
        "tensor_shape": {
            "dim": [{"size": str(axis.size), "name": axis.name} for axis in shape.dim],
            "unknown_rank": shape.unknown_rank,
        },
        "name": tensor.name,
    }


def _spec(tensor: Any) -> TensorSpec:
    name = types_pb2.DataType.Name(tensor.dtype)
    if name not in NUMPY_TYPES:
        raise ModelError(f"a tensor of type {name}, which JSON has no form for")
    shape = tensor.tensor_shape
    if shape.unknown_rank:
        return TensorSpec(name, None)
    return TensorSpec(name, tuple(None if axis.size < 0 else axis.size for axis in shape.dim))


def _one_row(spec: TensorSpec) -> np.ndarray:
    shape = [1 if size is None else size for size in spec.shape or (1,)]
    if spec.dtype == "DT_STRING":
        return np.full(shape, b"", object)
    return np.zeros(shape, spec.numpy_dtype)


def _line(error: Exception) -> str:
    """The first line of what TensorFlow says, without the places in the graph."""
    message = str(getattr(error, "message", None) or error).strip() or type(error).__name__
    return message.split("\n")[0][:_LONGEST_MESSAGE]
