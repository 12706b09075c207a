"""From what is asked for to the devices that are there."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

from keras_seq import backend
from keras_seq.cluster.alone import Cluster
from keras_seq.runtime.devices import Devices, check_backend
from keras_seq.text import InputError

# As long as the first host may prepare the text.
WAIT_SECONDS = 1800.0


def configure(devices: Devices) -> None:
    """Tells the backend which devices to use; to be called before it computes anything.

    Args:
        devices: What is asked for.

    Raises:
        InputError: It is not there, or cannot be done on this backend.
    """
    _refuse(devices)
    try:
        _module().configure(devices)
        if not devices.together:
            # Where hosts are to meet, nothing may be looked for before.
            _module().count_devices(devices)
    except InputError:
        raise
    except (RuntimeError, ValueError) as error:
        words = " ".join(str(error).split())[:200]
        raise InputError(
            f"--device {devices.kind or ''}: {backend.name()} cannot use it here: {words}"
        ) from None


def initialize(devices: Devices) -> None:
    """Lets the backend say at once all that it says when it starts.

    Args:
        devices: What is asked for.

    Raises:
        InputError: As for `configure`.
    """
    configure(devices)
    # Where hosts are to meet, nothing may be computed before.
    backend.initialize(compute=not devices.together)


def start_cluster(devices: Devices, notice: Callable[[str], None]) -> Cluster:
    """Meets the other hosts, and makes the devices ready.

    Args:
        devices: What is asked for.
        notice: Called with a line for the user.

    Returns:
        What shares the batches.

    Raises:
        InputError: Devices that are not there, or hosts that do not come.
    """
    configure(devices)
    if devices.host > 0:
        _wait_for(devices.hosts[0], notice)
    try:
        cluster: Cluster = _module().start(devices)
    except InputError:
        raise
    except (RuntimeError, ValueError) as error:
        words = " ".join(str(error).split())[:300]
        raise InputError(f"no devices to train on: {words}") from None
    if cluster.words and not cluster.follows:
        notice(cluster.words)
    return cluster


def _refuse(devices: Devices) -> None:
    name = backend.name()
    check_backend(name)
    if name == "jax":
        return
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
    from keras_seq.cluster import tensorflow_devices

    return tensorflow_devices


def _wait_for(address: str, notice: Callable[[str], None]) -> None:
    """Waits until the first host listens, which is when it has prepared the run."""
    name, _, port = address.rpartition(":")
    end = time.monotonic() + WAIT_SECONDS
    told = False
    while True:
        try:
            with socket.create_connection((name, int(port)), timeout=5):
                return
        except OSError as error:
            if time.monotonic() > end:
                raise InputError(
                    f"--hosts: the first host ({address}) did not come in "
                    f"{WAIT_SECONDS / 60:.0f} minutes: {error}"
                ) from None
        if not told:
            notice(f"waiting for the first host ({address})")
            told = True
        time.sleep(0.2)
