"""Several devices or hosts on JAX: `keras.distribution` shares batches and, on request, weights."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Any

import jax
import keras
import numpy as np

from keras_seq.cluster.alone import Cluster, Numbers, describe
from keras_seq.process.devices import Devices, count_used

# The second kernel of two in a row is split along its input axis, all other kernels along their
# output axis.
_SPLIT_INPUT = re.compile(r"(output_kernel|projection/kernel|embeddings)$")
_SPLIT_OUTPUT = re.compile(r"(kernel|qkv_bias|query_bias|key_value_bias|hidden/bias)$")


def configure(devices: Devices) -> None:
    """Sets the device options of JAX. Raises RuntimeError if JAX started with other options."""
    if devices.kind is not None and jax.config.jax_platforms != devices.kind:
        jax.config.update("jax_platforms", devices.kind)
    if devices.kind == "cpu" and devices.count is not None:
        if jax.config.jax_num_cpu_devices != devices.count:
            jax.config.update("jax_num_cpu_devices", devices.count)


def count_devices(devices: Devices) -> int:
    """The number of devices to use on this host."""
    local = jax.local_devices()
    return count_used(devices, len(local), local[0].platform)


def start(devices: Devices) -> Cluster:
    """Returns the cluster of these devices once all hosts have connected."""
    if devices.together and not jax.distributed.is_initialized():
        jax.distributed.initialize(devices.hosts[0], len(devices.hosts), devices.host_index)
    count = count_devices(devices)
    if count == 1 and not devices.together:
        return Cluster()
    return JaxCluster(count, devices.model_devices)


class JaxCluster(Cluster):
    """Devices of one or more hosts. Every `model_devices` devices share a copy of the weights."""

    def __init__(self, count: int, model_devices: int) -> None:
        self.host = jax.process_index()
        self.hosts = jax.process_count()
        self.row_multiple = count // model_devices
        # Ordered by host, like the shards of a batch.
        chosen: list[Any] = []
        for host in range(self.hosts):
            own = [device for device in jax.devices() if device.process_index == host]
            chosen += sorted(own, key=lambda device: device.id)[:count]
        names = np.array([f"{device.platform}:{device.id}" for device in chosen])
        self.description = describe(chosen[0].device_kind, len(names), self.hosts)
        if model_devices == 1:
            mesh = keras.distribution.DeviceMesh((len(names),), ["batch"], names)
            self._distribution: Any = keras.distribution.DataParallel(
                device_mesh=mesh, auto_shard_dataset=False
            )
        else:
            shape = (len(names) // model_devices, model_devices)
            mesh = keras.distribution.DeviceMesh(shape, ["batch", "model"], names)
            layout = keras.distribution.LayoutMap(mesh)
            self._distribution = WeightSharing(
                layout_map=layout, batch_dim_name="batch", auto_shard_dataset=False
            )
            self.description += f", {model_devices} for each copy of the weights"

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        return self._distribution.scope()

    def largest(self, values: Numbers) -> np.ndarray:
        array = np.asarray(values, np.float64)
        if self.hosts == 1:
            return array
        from jax.experimental import multihost_utils

        # Transferred as bytes, because JAX would round the numbers to float32.
        gathered = multihost_utils.process_allgather(array.view(np.uint8))
        rows = np.ascontiguousarray(np.asarray(gathered, np.uint8)).view(np.float64)
        return rows.reshape(self.hosts, len(array)).max(axis=0)


class WeightSharing(keras.distribution.ModelParallel):
    """Splits each weight along one of its dimensions if the size is divisible.

    Of two consecutive kernels, the first is split along its output and the second along its input,
    so that the activations between them need no communication.

    Reference:
        Shoeybi et al., "Megatron-LM", 2019, section 3, https://arxiv.org/abs/1909.08053
    """

    def get_variable_layout(self, variable: Any) -> Any:
        """Returns the layout of a weight, chosen by its path and shape."""
        if getattr(variable, "_layout", None) is not None:
            return variable._layout
        axes: list[str | None] = [None] * len(variable.shape)
        order: Sequence[int] = ()
        if _SPLIT_INPUT.search(variable.path):
            order = range(len(axes))
        elif _SPLIT_OUTPUT.search(variable.path):
            order = range(len(axes))[::-1]
        for axis in order:
            if variable.shape[axis] % self.device_mesh.shape[1] == 0:
                axes[axis] = "model"
                break
        return keras.distribution.TensorLayout(axes, self.device_mesh)
