"""Configures the devices of a training and connects its hosts."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

from keras_seq import backend
from keras_seq.cluster.alone import Cluster
from keras_seq.process.devices import Devices, check_backend
from keras_seq.text import InputError

# Maximum time that the other hosts wait while the first host prepares the text.
WAIT_SECONDS = 1800.0


def configure(devices: Devices) -> None:
    """Tells the backend which devices to use. Call it before the backend computes anything.

    Raises InputError if the devices are missing or this backend does not support them.
    """
    _check_supported(devices)
    message = f"--device {devices.kind or ''}: {backend.name()} cannot use it here"
    with _errors_as_input_errors(message):
        _module().configure(devices)
        # Listing devices initializes the backend, which must not happen before the hosts connect.
        if not devices.together:
            _module().count_devices(devices)


def initialize(devices: Devices) -> None:
    """Calls `configure` and initializes the backend, so that its log messages appear now."""
    configure(devices)
    # Nothing may be computed before the hosts connect.
    backend.initialize(compute=not devices.together)


def start_cluster(devices: Devices, notice: Callable[[str], None]) -> Cluster:
    """Connects to the other hosts, and returns the cluster that trains a model.

    `notice` is called with each line for the user. Raises InputError if devices are missing or the
    first host does not start.
    """
    configure(devices)
    if devices.host_index > 0:
        _wait_for(devices.hosts[0], notice)
    with _errors_as_input_errors("no devices to train on"):
        cluster: Cluster = _module().start(devices)
    if cluster.description and cluster.is_chief:
        notice(cluster.description)
    return cluster


@contextlib.contextmanager
def _errors_as_input_errors(message: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (RuntimeError, ValueError) as error:
        raise InputError(f"{message}: {' '.join(str(error).split())[:300]}") from None


def _check_supported(devices: Devices) -> None:
    name = backend.name()
    check_backend(name)
    if name == "jax":
        return
    if name == "torch":
        if max(devices.count or 1, devices.model_devices, len(devices.hosts)) > 1:
            raise InputError(
                "--backend torch: torch trains on one device: use --backend jax for several "
                "devices or hosts"
            )
    if devices.kind == "tpu":
        raise InputError("--device tpu: TPUs are used through JAX: give --backend jax")
    if devices.model_devices > 1:
        raise InputError(
            "--model-devices: weights are shared out among devices on JAX: give --backend jax"
        )
    if devices.together and devices.kind == "cpu" and (devices.count or 1) > 1:
        raise InputError(
            "--devices: on TensorFlow each of several hosts has one CPU: leave it out, or give "
            "--backend jax"
        )


def _module() -> Any:
    if backend.name() == "jax":
        from keras_seq.cluster import jax_devices

        return jax_devices
    if backend.name() == "torch":
        from keras_seq.cluster import torch_devices

        return torch_devices
    from keras_seq.cluster import tensorflow_devices

    return tensorflow_devices


def _wait_for(address: str, notice: Callable[[str], None]) -> None:
    """Waits until the first host listens, which it does after preparing the run."""
    name, _, port = address.rpartition(":")
    end = time.monotonic() + WAIT_SECONDS
    announced = False
    while True:
        try:
            with socket.create_connection((name, int(port)), timeout=5):
                return
        except OSError as error:
            if time.monotonic() > end:
                raise InputError(
                    f"--hosts: the first host ({address}) did not start within "
                    f"{WAIT_SECONDS / 60:.0f} minutes: {error}"
                ) from None
        if not announced:
            notice(f"waiting for the first host ({address})")
            announced = True
        time.sleep(0.2)
