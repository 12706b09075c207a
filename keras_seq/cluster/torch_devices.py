"""One device on torch. Keras chooses it once, when it is imported."""

from __future__ import annotations

from keras_seq import backend
from keras_seq.cluster.alone import Cluster
from keras_seq.process.devices import Devices, count_used


def configure(devices: Devices) -> None:
    """Raises RuntimeError if Keras does not use a device of this kind."""
    used, _ = backend.device()
    if devices.kind == "gpu" and used != "gpu":
        raise RuntimeError("Keras found no GPU, or KERAS_TORCH_DEVICE names another device")
    if devices.kind == "cpu" and used != "cpu":
        raise RuntimeError("set KERAS_TORCH_DEVICE=cpu before Keras is imported")


def count_devices(devices: Devices) -> int:
    """Returns the number of devices to use, which is 1."""
    return count_used(devices, 1, backend.device()[0])


def start(devices: Devices) -> Cluster:
    """Returns the cluster of one device, which trains with `fit` of Keras."""
    return Cluster()
