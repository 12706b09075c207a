"""Devices and hosts under JAX: `keras.distribution` shares batches, and weights if asked to."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import jax
import keras
import numpy as np

from keras_seq.cluster.alone import Cluster, Numbers
from keras_seq.runtime.devices import Devices, count_used

# Kernels whose input is what the kernel before them gave: these are cut along their input.
_CUT_FIRST = re.compile(r"(output_kernel|projection/kernel|embeddings)$")
_CUT_LAST = re.compile(r"(kernel|qkv_bias|query_bias|key_value_bias|hidden/bias)$")


def configure(devices: Devices) -> None:
    """Sets what JAX reads when it starts; RuntimeError if it has started otherwise."""
    if devices.kind is not None and jax.config.jax_platforms != devices.kind:
        jax.config.update("jax_platforms", devices.kind)
    if devices.kind == "cpu" and devices.count is not None:
        if jax.config.jax_num_cpu_devices != devices.count:
            jax.config.update("jax_num_cpu_devices", devices.count)


def count_devices(devices: Devices) -> int:
    """How many devices of this host are used.

    Raises:
        InputError: There are fewer, or they cannot be shared out as asked.
    """
    here = jax.local_devices()
    return count_used(devices, len(here), here[0].platform)


def start(devices: Devices) -> Cluster:
    """The cluster of these devices, when all hosts are there."""
    if devices.together and not jax.distributed.is_initialized():
        jax.distributed.initialize(devices.hosts[0], len(devices.hosts), devices.host)
    count = count_devices(devices)
    if count == 1 and not devices.together:
        return Cluster()
    return JaxCluster(count, devices.model_devices)


class JaxCluster(Cluster):
    """Several devices, of one host or of several.

    Args:
        count: Devices of each host.
        model_devices: Those that share one copy of the weights.
    """

    def __init__(self, count: int, model_devices: int) -> None:
        self.host = jax.process_index()
        self.hosts = jax.process_count()
        self.row_multiple = count // model_devices
        # In the order of the hosts, as their parts of a batch are.
        chosen: list[Any] = []
        for host in range(self.hosts):
            own = [device for device in jax.devices() if device.process_index == host]
            chosen += sorted(own, key=lambda device: device.id)[:count]
        names = np.array([f"{device.platform}:{device.id}" for device in chosen])
        if model_devices == 1:
            mesh = keras.distribution.DeviceMesh((len(names),), ["batch"], names)
            self._distribution: Any = keras.distribution.DataParallel(
                device_mesh=mesh, auto_shard_dataset=False
            )
        else:
            shape = (len(names) // model_devices, model_devices)
            mesh = keras.distribution.DeviceMesh(shape, ["batch", "model"], names)
            self._distribution = WeightSharing(
                layout_map=keras.distribution.LayoutMap(mesh),
                batch_dim_name="batch",
                auto_shard_dataset=False,
            )
        kind = chosen[0].device_kind
        self.words = f"devices {len(names)} ({kind})" + (
            f" of {self.hosts} hosts" if self.hosts > 1 else ""
        )
        if model_devices > 1:
            self.words += f", {model_devices} for each copy of the weights"

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        return self._distribution.scope()

    def largest(self, values: Numbers) -> np.ndarray:
        array = np.asarray(values, np.float64)
        if self.hosts == 1:
            return array
        from jax.experimental import multihost_utils

        # As bytes, for JAX would round to float32.
        parts = multihost_utils.process_allgather(array.view(np.uint8))
        rows = np.ascontiguousarray(np.asarray(parts, np.uint8)).view(np.float64)
        return rows.reshape(self.hosts, len(array)).max(axis=0)


class WeightSharing(keras.distribution.ModelParallel):
    """Weights cut in parts along one of their dimensions, as far as its size allows.

    Of two kernels that follow each other the first is cut along its output and the
    second along its input, so that what is between them stays where it is.

    Reference:
        Shoeybi et al., "Megatron-LM", 2019, section 3, https://arxiv.org/abs/1909.08053
    """

    def get_variable_layout(self, variable: Any) -> Any:
        """The layout of a weight, by its path and shape."""
        if getattr(variable, "_layout", None) is not None:
            return variable._layout
        axes: list[str | None] = [None] * len(variable.shape)
        parts = self.device_mesh.shape[1]
        if _CUT_FIRST.search(variable.path):
            order = range(len(axes))
        elif _CUT_LAST.search(variable.path):
            order = range(len(axes) - 1, -1, -1)
        else:
            order = range(0)
        for axis in order:
            if variable.shape[axis] % parts == 0:
                axes[axis] = "model"
                break
        return keras.distribution.TensorLayout(axes, self.device_mesh)
