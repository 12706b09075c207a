"""Several devices or hosts on TensorFlow: `tf.distribute` with a custom training loop."""

from __future__ import annotations

import contextlib
import functools
import json
import os
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_seq.cluster.alone import Cluster, Numbers, describe
from keras_seq.cluster.tensorflow_cores import TensorFlowCores
from keras_seq.cluster.tensorflow_loop import (
    ShardGradients,
    TensorFlowLoop,
    Update,
    Updates,
    signature_of,
)
from keras_seq.process.devices import Devices, count_used
from keras_seq.process.threads import num_training_threads


def configure(devices: Devices) -> None:
    """Sets device options. Raises RuntimeError if TensorFlow started with others or has no GPU."""
    if devices.kind == "cpu":
        if tf.config.get_visible_devices("GPU"):
            tf.config.set_visible_devices([], "GPU")
        (processor,) = tf.config.list_physical_devices("CPU")[:1]
        logical = tf.config.get_logical_device_configuration(processor)
        if devices.count is not None and devices.count != len(logical or [None]):
            logical = [tf.config.LogicalDeviceConfiguration()] * devices.count
            tf.config.set_logical_device_configuration(processor, logical)
    elif devices.kind == "gpu" and not tf.config.get_visible_devices("GPU"):
        raise RuntimeError("it finds no GPU")
    if devices.together:
        cluster = {"cluster": {"worker": list(devices.hosts)}}
        task = {"task": {"type": "worker", "index": devices.host_index}}
        os.environ["TF_CONFIG"] = json.dumps(cluster | task)


def count_devices(devices: Devices) -> int:
    """The number of devices to use on this host."""
    names = _names(devices)
    return count_used(devices, len(names), names[0].split(":")[-2].lower())


def _names(devices: Devices) -> list[str]:
    gpus = [] if devices.kind == "cpu" else tf.config.list_logical_devices("GPU")
    return [device.name for device in gpus or tf.config.list_logical_devices("CPU")]


def start(devices: Devices) -> Cluster:
    """Returns the cluster of these devices once all hosts have connected."""
    if devices.together:
        return TensorFlowCluster(_multi_worker_strategy(), devices.host_index, len(devices.hosts))
    count = count_devices(devices)
    if count == 1:
        shards = 1 if tf.config.list_logical_devices("GPU") else num_training_threads()
        return TensorFlowCores(shards) if shards > 1 else Cluster()
    strategy = tf.distribute.MirroredStrategy(_names(devices)[:count])
    return TensorFlowCluster(strategy, 0, 1)


@functools.cache
def _multi_worker_strategy() -> Any:
    # A process can create this strategy only once, before it computes anything.
    return tf.distribute.MultiWorkerMirroredStrategy()


class TensorFlowCluster(TensorFlowLoop):
    """Replicas of a model on several devices of one or more hosts.

    `fit` of Keras does not support several hosts and divides losses by the number of replicas, and
    the optimizers of Keras do not support conditional updates within a replica.
    """

    _total: Any = None

    def __init__(self, strategy: Any, host: int, hosts: int) -> None:
        self._strategy = strategy
        self.host = host
        self.hosts = hosts
        self.row_multiple = strategy.num_replicas_in_sync // hosts
        kind = strategy.extended.worker_devices[0].rsplit(":", 2)[-2]
        self.description = describe(kind, strategy.num_replicas_in_sync, hosts)

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        return self._strategy.scope()

    def _updates(self, model: keras.Model, example: Any) -> Updates:
        update: Update = self._made_for(model, lambda: self._update_of(model, example))
        return contextlib.nullcontext(update)

    def _update_of(self, model: keras.Model, example: Any) -> Update:
        shard_gradients = ShardGradients(model)

        def replica(batch: Any) -> Any:
            context = tf.distribute.get_replica_context()
            number = tf.cast(context.replica_id_in_sync_group, tf.int32)
            # A replica cannot assign variables that all replicas share.
            gradients, loss, counters = shard_gradients(self._rows_of(batch, number), number)
            existing = [gradient for gradient in gradients if gradient is not None]
            *existing, loss = context.all_reduce("SUM", [*existing, loss])
            summed = iter(existing)
            gradients = [None if gradient is None else next(summed) for gradient in gradients]
            return gradients, loss, counters

        def update(batch: Any) -> Any:
            results = self._strategy.run(replica, args=(batch,))
            # All replicas have the same results.
            gradients, loss, counters = tf.nest.map_structure(
                lambda value: self._strategy.experimental_local_results(value)[0], results
            )
            shard_gradients.apply(gradients, counters)
            return loss

        signature = [signature_of(example)]
        traced: Update = tf.function(update, input_signature=signature, autograph=False)
        return traced

    def _rows_of(self, batch: Any, number: Any) -> Any:
        """The rows of a replica in the batch of its host."""
        index = number - self.host * self.row_multiple

        def rows_of(tensor: Any) -> Any:
            rows = tf.shape(tensor)[0] // self.row_multiple
            return tensor[index * rows : (index + 1) * rows]

        return tf.nest.map_structure(rows_of, batch)

    def largest(self, values: Numbers) -> np.ndarray:
        array = np.asarray(values, np.float64)
        if self.hosts == 1:
            return array
        rows = np.zeros((self.hosts, len(array)), np.int64)
        # Sum the floats as integers: adding 0 to an integer returns exactly the same bits.
        rows[self.host] = array.view(np.int64)
        return self._sum_over_hosts(rows).view(np.float64).max(axis=0)

    def _sum_over_hosts(self, rows: np.ndarray) -> np.ndarray:
        def replica(tensor: Any) -> Any:
            context = tf.distribute.get_replica_context()
            first = tf.equal(context.replica_id_in_sync_group, self.host * self.row_multiple)
            return context.all_reduce("SUM", tf.where(first, tensor, tf.zeros_like(tensor)))

        @tf.function(autograph=False, reduce_retracing=True)
        def total(tensor: Any) -> Any:
            results = self._strategy.run(replica, args=(tensor,))
            return self._strategy.experimental_local_results(results)[0]

        if self._total is None:
            self._total = total
        return self._total(tf.constant(rows)).numpy()
