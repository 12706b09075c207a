"""The precision of a training: the requested one, or the fastest on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from keras_seq import backend
from keras_seq.cluster import Cluster
from keras_seq.run import Run

Precision = Literal["float32", "bfloat16", "float16"]

# Narrower models spend most CPU time outside matrix products; see benchmarks/NOTES.md.
_NARROWEST_ON_CPU = 128
# Smallest speedup of matrix products on a CPU that outweighs the slowdown of other operations.
_SMALLEST_GAIN_ON_CPU = 1.4


@dataclass(frozen=True)
class Device:
    """Properties of a device that determine the precision.

    `capability` is the compute capability of an NVIDIA GPU. `bfloat16_gain` is the speedup of
    matrix products in bfloat16 over float32 on a CPU, 0 if not measured.
    """

    backend: str
    kind: str
    capability: tuple[int, int] | None = None
    bfloat16_gain: float = 0.0


def this_device() -> Device:
    """The device that Keras uses in this process.

    The speedup of bfloat16 on a CPU is measured, because it does not follow from the instruction
    set: of two processors with `avx512_bf16`, one was twice as fast and the other half as fast.
    """
    device = Device(backend.name(), *backend.device())
    if device.kind != "cpu" or device.backend != "tensorflow":
        return device
    single, half = backend.matmul_seconds("float32", "bfloat16")
    return replace(device, bfloat16_gain=single / half)


def choose_precision(device: Device, width: int) -> tuple[Precision, str]:
    """Returns the fastest precision for a model on a device, and the reason as text.

    `width` is the number of units of the model; for recurrent models, of the decoder.

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
    if device.backend == "jax":
        return "float32", "on a CPU, JAX is slower in bfloat16"
    if device.backend == "torch" or device.kind != "cpu":
        return "float32", "half precision is not measured on this device"
    if width < _NARROWEST_ON_CPU:
        return "float32", f"a model {width} wide is no faster in bfloat16 on a CPU"
    gain = device.bfloat16_gain
    reason = f"this CPU computes products in bfloat16 {gain:.1f} times as fast"
    return ("bfloat16" if gain >= _SMALLEST_GAIN_ON_CPU else "float32"), reason


def faster_precision(device: Device, width: int, requested: str) -> tuple[Precision, str] | None:
    """Returns a precision that is probably faster than the requested one, or None.

    >>> faster_precision(Device("jax", "cpu"), 512, "bfloat16")
    ('float32', 'on a CPU, JAX is slower in bfloat16')
    >>> faster_precision(Device("jax", "gpu", capability=(9, 0)), 512, "float16")
    """
    if requested == "float32":
        return None
    chosen, reason = choose_precision(device, width)
    # GPUs with bfloat16 are equally fast in float16.
    as_fast = device.kind == "gpu" and chosen == "bfloat16"
    unmeasured = device.backend == "torch" and device.kind != "gpu"
    unknown = unmeasured or (device.kind == "gpu" and device.capability is None)
    return None if chosen == requested or as_fast or unknown else (chosen, reason)


def dtype_policy(precision: str) -> str | None:
    """The Keras dtype policy of a precision; None for the global policy."""
    return None if precision == "float32" else f"mixed_{precision}"


def resolve_precision(run: Run, notice: Callable[[str], None], cluster: Cluster) -> None:
    """Replaces the precision "auto" in the settings of a run, and reports the choice.

    The settings are also updated on disk, so that a resumed training keeps its precision. If the
    settings name a precision that is probably slower on this device, a notice says so.
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
