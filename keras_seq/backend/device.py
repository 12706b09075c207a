"""The Keras backend and its devices."""

import contextlib
import importlib
import time
from typing import Any

import keras


def name() -> str:
    """Name of the Keras backend: "tensorflow", "jax" or "torch"."""
    return str(keras.backend.backend())


def device() -> tuple[str, tuple[int, int] | None]:
    """The kind of device, "cpu", "gpu" or "tpu", and the compute capability of an NVIDIA GPU."""
    capability: Any = None
    if name() == "tensorflow":
        import tensorflow as tf

        if tf.config.get_visible_devices("TPU"):
            return "tpu", None
        gpus = tf.config.get_visible_devices("GPU")
        if not gpus:
            return "cpu", None
        capability = tf.config.experimental.get_device_details(gpus[0]).get("compute_capability")
        return "gpu", capability
    if name() == "jax":
        import jax

        first = jax.devices()[0]
        capability = getattr(first, "compute_capability", None)
        if first.platform != "gpu" or not capability:
            return first.platform, None
        major, _, minor = str(capability).partition(".")
        return "gpu", (int(major), int(minor or 0))
    if name() == "torch":
        import torch

        used = keras.ops.zeros(()).device
        if used.type == "cuda":
            return "gpu", torch.cuda.get_device_capability(used)
        return used.type, None
    return "cpu", None


def initialize(compute: bool = True) -> None:
    """Imports what `fit` imports and, by default, computes something to start the backend."""
    if compute:
        keras.ops.zeros(1)
    # `fit` imports TensorFlow on all backends, where nothing hides it.
    with contextlib.suppress(ImportError):
        importlib.import_module("tensorflow")


def computes_on_one_processor() -> bool:
    """Tests if TensorFlow computes on a single CPU device, without a distribution strategy.

    Concurrent calls of compiled functions do not slow each other down in this case.
    """
    if name() != "tensorflow":
        return False
    import tensorflow as tf

    kinds = [logical.device_type for logical in tf.config.list_logical_devices()]
    return kinds == ["CPU"] and not tf.distribute.has_strategy()


def matmul_seconds(*dtypes: str, size: int = 512) -> list[float]:
    """Measures the product of two square matrices in each dtype; minimum of 12 runs, in seconds."""
    matrices = [keras.ops.cast(keras.ops.ones((size, size)), dtype) for dtype in dtypes]

    def measure(matrix: Any) -> float:
        start = time.perf_counter()
        # Conversion to a Python float waits for the result.
        float(keras.ops.cast(keras.ops.matmul(matrix, matrix)[0, 0], "float32"))
        return time.perf_counter() - start

    # Alternates the dtypes, so that other load on the machine affects all of them equally.
    turns = [[measure(matrix) for matrix in matrices] for _ in range(12)]
    return [min(seconds) for seconds in zip(*turns, strict=True)]
