"""What a training is asked to run on; knows nothing of Keras."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Literal, get_args

from keras_seq.text import InputError

Kind = Literal["cpu", "gpu", "tpu"]
# More processors than that are not simulated.
_MOST_CPUS = 64


@dataclass(frozen=True)
class Devices:
    """The devices of each host, and the hosts.

    Args:
        kind: "cpu", "gpu" or "tpu"; None for the best that there is.
        count: Devices of each host that are used; None for all, of CPUs one. A host's
            processor can be several devices, which share its cores: to try things out.
        model_devices: Devices that share one copy of the weights; on JAX.
        hosts: Addresses `name:port` of all hosts, the first of which writes the run;
            empty for this host alone. Each host sees the same files.
        host: The place of this host among them, from 0.

    Raises:
        InputError: A number or address that cannot be.

    Example:

    >>> Devices("cpu", count=2).count
    2
    """

    kind: Kind | None = None
    count: int | None = None
    model_devices: int = 1
    hosts: tuple[str, ...] = ()
    host: int = 0

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in get_args(Kind):
            raise InputError(f"--device: received {self.kind!r}, expected cpu, gpu or tpu")
        if self.count is not None and self.count < 1:
            raise InputError(f"--devices: received {self.count}, expected 1 or more")
        if self.kind == "cpu" and (self.count or 1) > _MOST_CPUS:
            raise InputError(f"--devices: received {self.count}, of CPUs at most {_MOST_CPUS}")
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
        if not 0 <= self.host < max(1, len(self.hosts)):
            raise InputError(
                f"--host: received {self.host}, expected the place of this host in --hosts, "
                + (f"from 0 to {len(self.hosts) - 1}" if self.hosts else "which is not given")
            )

    @property
    def together(self) -> bool:
        """Whether several hosts share the training."""
        return len(self.hosts) > 1


def count_used(devices: Devices, there: int, kind: str) -> int:
    """How many devices of a host are used.

    Args:
        devices: What is asked for.
        there: How many the host has.
        kind: What they are: "cpu", "gpu" or "tpu".

    Returns:
        As many as are asked for; otherwise all, of CPUs one.

    Raises:
        InputError: There are fewer, or they cannot be shared out as asked.

    Example:

    >>> count_used(Devices(model_devices=2), there=8, kind="gpu")
    8
    """
    parts = devices.model_devices
    if devices.count is not None:
        option, count = "--devices", devices.count
    else:
        option, count = "--model-devices", max(parts, 1 if kind == "cpu" else there)
    if count > there:
        advice = ": a processor is several with --device cpu and --devices"
        raise InputError(
            f"{option}: received {count}, this host has {there} ({kind})"
            + (advice if kind == "cpu" else "")
        )
    if count % parts:
        raise InputError(
            f"--model-devices: received {parts}, which does not divide the {count} devices of "
            "this host"
        )
    return count


def check_backend(name: str | None) -> None:
    """Refuses a backend that trains no models or is not installed; imports nothing.

    Args:
        name: What KERAS_BACKEND has, or None.

    Raises:
        InputError: As said.
    """
    if name not in (None, "", "tensorflow", "jax"):
        raise InputError(
            f"KERAS_BACKEND={name}: training and decoding run on TensorFlow and JAX only: set "
            "KERAS_BACKEND=tensorflow or KERAS_BACKEND=jax"
        )
    if name == "jax" and importlib.util.find_spec("jax") is None:
        raise InputError(
            "--backend jax: JAX is not installed: pip install 'keras-seq[jax]', or leave it out "
            "to train on TensorFlow"
        )
