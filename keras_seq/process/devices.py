"""The devices that a user requests for a training. This module does not import Keras."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Literal, get_args

from keras_seq.text import InputError

Kind = Literal["cpu", "gpu", "tpu"]
# Maximum number of simulated CPU devices.
_MAX_CPUS = 64


@dataclass(frozen=True)
class Devices:
    """Devices to use on each host, and the hosts.

    Args:
        kind: "cpu", "gpu" or "tpu"; None for the best available kind.
        count: Devices to use on each host; None for all GPUs or TPUs, or one CPU. For
            experiments, a CPU can be split into several devices, which share its cores.
        model_devices: Devices that share one copy of the weights (JAX only).
        hosts: Addresses `name:port` of all hosts, or empty for a single host. The first host
            writes the run. All hosts must see the same files.
        host_index: Index of this host in `hosts`.

    Raises:
        InputError: If a number or an address is invalid.

    Example:

    >>> Devices("cpu", count=2).count
    2
    """

    kind: Kind | None = None
    count: int | None = None
    model_devices: int = 1
    hosts: tuple[str, ...] = ()
    host_index: int = 0

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in get_args(Kind):
            raise InputError(f"--device: received {self.kind!r}, expected cpu, gpu or tpu")
        if self.count is not None and self.count < 1:
            raise InputError(f"--devices: received {self.count}, expected 1 or more")
        if self.kind == "cpu" and (self.count or 1) > _MAX_CPUS:
            raise InputError(f"--devices: received {self.count}, of CPUs at most {_MAX_CPUS}")
        if self.model_devices < 1:
            raise InputError(f"--model-devices: received {self.model_devices}, expected 1 or more")
        if self.count is not None and self.count % self.model_devices:
            raise InputError(
                f"--model-devices: received {self.model_devices}, which does not divide --devices "
                f"({self.count})"
            )
        for address in self.hosts:
            name, _, port = address.rpartition(":")
            if not name or not port.isdecimal() or not 0 < int(port) < 65536:
                raise InputError(
                    f"--hosts: received {address!r}, expected NAME:PORT of each host, with commas "
                    "between them"
                )
        if len(set(self.hosts)) < len(self.hosts):
            raise InputError(f"--hosts: {','.join(self.hosts)} has an address twice")
        if not 0 <= self.host_index < max(1, len(self.hosts)):
            limits = f"from 0 to {len(self.hosts) - 1}" if self.hosts else "which is not given"
            raise InputError(
                f"--host-index: received {self.host_index}, expected the index of this host in "
                f"--hosts, {limits}"
            )

    @property
    def together(self) -> bool:
        """True if several hosts take part in the training."""
        return len(self.hosts) > 1


def count_used(devices: Devices, available: int, kind: str) -> int:
    """The number of devices to use on a host; by default all GPUs or TPUs, or one CPU.

    `kind` is "cpu", "gpu" or "tpu". Raises InputError if the host has fewer devices, or
    `model_devices` does not divide their number.

    Example:

    >>> count_used(Devices(model_devices=2), available=8, kind="gpu")
    8
    """
    parts = devices.model_devices
    if devices.count is not None:
        option, count = "--devices", devices.count
    else:
        option, count = "--model-devices", max(parts, 1 if kind == "cpu" else available)
    if count > available:
        advice = ": a processor is several with --device cpu and --devices"
        advice = advice if kind == "cpu" else ""
        raise InputError(f"{option}: received {count}, this host has {available} ({kind}){advice}")
    if count % parts:
        raise InputError(
            f"--model-devices: received {parts}, which does not divide the {count} devices of "
            "this host"
        )
    return count


def check_backend(name: str | None) -> None:
    """Raises InputError if a Keras backend is not supported or installed. Does not import it."""
    if name not in (None, "", "tensorflow", "jax", "torch"):
        raise InputError(
            f"KERAS_BACKEND={name}: training and decoding run on TensorFlow, JAX and torch: set "
            "KERAS_BACKEND to tensorflow, jax or torch"
        )
    title = {"jax": "JAX", "torch": "PyTorch"}.get(name or "")
    if title and importlib.util.find_spec(str(name)) is None:
        raise InputError(
            f"--backend {name}: {title} is not installed: python -m pip install "
            f"'keras-seq[{name}]', or leave it out to train on TensorFlow"
        )
