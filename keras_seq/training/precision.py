"""The arithmetic of a training: what is asked for, and what is fastest on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from keras_seq import backend
from keras_seq.cluster import Cluster
from keras_seq.run import Run

Precision = Literal["float32", "bfloat16", "float16"]

_POLICIES = {"float32": None, "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}
# Of narrower models a CPU's time goes elsewhere: benchmarks/NOTES.md has the figures.
_NARROWEST_ON_CPU = 128
# What products must gain on a CPU to make up for what the rest of an update loses.
_SMALLEST_GAIN_ON_CPU = 1.4


@dataclass(frozen=True)
class Device:
    """What the choice of a precision goes by.

    Attributes:
        backend: "tensorflow" or "jax".
        kind: "cpu", "gpu" or "tpu".
        capability: Compute capability of an NVIDIA GPU, None for others.
        bfloat16_gain: How many times as fast as those of float32 a CPU computes products of
            matrices of bfloat16; 0 where nobody measured it.
    """

    backend: str
    kind: str
    capability: tuple[int, int] | None = None
    bfloat16_gain: float = 0.0


def this_device() -> Device:
    """The device that Keras computes on in this process.

    What a CPU's products gain is measured, for its name and its instructions do not tell:
    with `avx512_bf16` alone one processor was found to gain twofold and another to lose half.
    """
    device = Device(backend.name(), *backend.device())
    if device.kind != "cpu" or device.backend != "tensorflow":
        return device
    single, half = backend.matmul_seconds("float32", "bfloat16")
    return replace(device, bfloat16_gain=single / half)


def choose_precision(device: Device, width: int) -> tuple[Precision, str]:
    """The fastest precision for a model on a device, and why, in words.

    Args:
        device: From `this_device`.
        width: Units of the model, of a recurrent one those of its decoder.

    >>> choose_precision(Device("jax", "gpu", capability=(9, 0)), 512)
    ('bfloat16', 'a GPU of compute capability 9.0')
    >>> choose_precision(Device("tensorflow", "cpu", bfloat16_gain=0.5), 512)
    ('float32', 'this CPU computes products in bfloat16 0.5 times as fast')
    """
    if device.kind == "tpu":
        return "bfloat16", "a TPU"
    if device.kind == "gpu":
        if device.capability is None:
            return "float32", "a GPU whose compute capability is not known"
        reason = "a GPU of compute capability {}.{}".format(*device.capability)
        if device.capability >= (8, 0):
            return "bfloat16", reason
        return ("float16" if device.capability >= (7, 0) else "float32"), reason
    if device.backend != "tensorflow":
        return "float32", "on a CPU, JAX is slower in bfloat16"
    if width < _NARROWEST_ON_CPU:
        return "float32", f"a model {width} wide is no faster in bfloat16 on a CPU"
    gain = device.bfloat16_gain
    return (
        "bfloat16" if gain >= _SMALLEST_GAIN_ON_CPU else "float32",
        f"this CPU computes products in bfloat16 {gain:.1f} times as fast",
    )


def faster_precision(device: Device, width: int, asked: str) -> tuple[Precision, str] | None:
    """What is probably faster than the half precision that is asked for, and why, in words.

    Args:
        device: From `this_device`.
        width: Units of the model, of a recurrent one those of its decoder.
        asked: "float32", "bfloat16" or "float16".

    Returns:
        As `choose_precision`, or None if nothing is.

    >>> faster_precision(Device("jax", "cpu"), 512, "bfloat16")
    ('float32', 'on a CPU, JAX is slower in bfloat16')
    >>> faster_precision(Device("jax", "gpu", capability=(9, 0)), 512, "float16")
    """
    if asked == "float32":
        return None
    chosen, reason = choose_precision(device, width)
    # GPUs that compute in bfloat16 do so in float16 as fast.
    as_fast = device.kind == "gpu" and chosen == "bfloat16"
    unknown = device.kind == "gpu" and device.capability is None
    return None if chosen == asked or as_fast or unknown else (chosen, reason)


def dtype_policy(precision: str) -> str | None:
    """The Keras dtype policy of a training's model; None is the global one."""
    return _POLICIES[precision]


def resolve_precision(run: Run, notice: Callable[[str], None], cluster: Cluster) -> None:
    """Puts what is chosen in the place of "auto" in a run's settings, and says so.

    In the directory, too: a training goes on in the precision that it began with. Where
    one is asked for by name that is probably slower here, that is said.

    Args:
        run: A prepared run.
        notice: Called with the line for the user.
        cluster: Of all its hosts the first one's measurement counts.
    """
    training = run.settings.training
    if training.precision == "float32":
        return
    device = this_device()
    (gain,) = cluster.of_first([device.bfloat16_gain])
    device = replace(device, bfloat16_gain=float(gain))
    width = run.settings.model.output_width
    if training.precision != "auto":
        faster = faster_precision(device, width, training.precision)
        if faster is not None:
            notice(f"precision {training.precision}: {faster[0]} is probably faster: {faster[1]}")
        return
    precision, reason = choose_precision(device, width)
    notice(f"precision {precision}: {reason}")
    training = training.model_copy(update={"precision": precision})
    run.update_settings(run.settings.model_copy(update={"training": training}))
