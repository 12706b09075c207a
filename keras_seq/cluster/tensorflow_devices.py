"""Devices and hosts under TensorFlow: `tf.distribute`, with a loop of our own.

Keras' `fit` knows nothing of several hosts, divides losses by the number of replicas, and
its optimizers do not take conditional updates within a replica.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_seq import backend
from keras_seq.cluster.alone import Cluster, Numbers
from keras_seq.devices import Devices, count_used

# An odd number far from small ones, by which replicas draw otherwise.
_SEED_STEP = 0x1E3779B1


def configure(devices: Devices) -> None:
    """Sets what TensorFlow reads when it starts; RuntimeError if it has started otherwise."""
    if devices.kind == "cpu":
        if tf.config.get_visible_devices("GPU"):
            tf.config.set_visible_devices([], "GPU")
        (processor,) = tf.config.list_physical_devices("CPU")[:1]
        parts = tf.config.get_logical_device_configuration(processor)
        if devices.count is not None and devices.count != len(parts or [None]):
            part = tf.config.LogicalDeviceConfiguration()
            tf.config.set_logical_device_configuration(processor, [part] * devices.count)
    elif devices.kind == "gpu" and not tf.config.get_visible_devices("GPU"):
        raise RuntimeError("it finds no GPU")
    if devices.together:
        cluster = {"cluster": {"worker": list(devices.hosts)}}
        task = {"task": {"type": "worker", "index": devices.host}}
        os.environ["TF_CONFIG"] = json.dumps(cluster | task)


def count_devices(devices: Devices) -> int:
    """How many devices of this host are used.

    Raises:
        InputError: There are fewer.
    """
    there = _names(devices)
    kind = there[0].split(":")[-2].lower()
    return count_used(devices, len(there), kind)


def _names(devices: Devices) -> list[str]:
    gpus = [] if devices.kind == "cpu" else tf.config.list_logical_devices("GPU")
    return [device.name for device in gpus or tf.config.list_logical_devices("CPU")]


def start(devices: Devices) -> Cluster:
    """The cluster of these devices, when all hosts are there."""
    if devices.together:
        return TensorFlowCluster(_several_hosts(), devices.host, len(devices.hosts))
    count = count_devices(devices)
    if count == 1:
        return Cluster()
    strategy = tf.distribute.MirroredStrategy(_names(devices)[:count])
    return TensorFlowCluster(strategy, 0, 1)


@functools.cache
def _several_hosts() -> Any:
    # Made once in a process, before anything is computed.
    return tf.distribute.MultiWorkerMirroredStrategy()


class TensorFlowCluster(Cluster):
    """Replicas of a model on several devices, of one host or of several.

    Each replica draws its dropout from numbers of its own. Gradients are added up
    over all replicas, and the optimizer then updates all copies of a weight.

    Args:
        strategy: A `tf.distribute` strategy.
        host: The place of this process.
        hosts: How many there are.
    """

    def __init__(self, strategy: Any, host: int, hosts: int) -> None:
        self._strategy = strategy
        self.host = host
        self.hosts = hosts
        self.row_multiple = strategy.num_replicas_in_sync // hosts
        kind = strategy.extended.worker_devices[0].rsplit(":", 2)[-2]
        self.words = f"devices {strategy.num_replicas_in_sync} ({kind})" + (
            f" of {hosts} hosts" if hosts > 1 else ""
        )

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        return self._strategy.scope()

    def fit(
        self, model: keras.Model, batches: Callable[[], Iterator[Any]], example: Any, **options: Any
    ) -> None:
        """As `Cluster.fit`; at its end the weights are what they are, and not their average."""
        feed = iter(backend.batch_feed(batches, example))
        update = self._make_update(model, example)
        epochs, steps = options.get("epochs", 1), options["steps_per_epoch"]
        callbacks = keras.callbacks.CallbackList(
            options.get("callbacks"), model=model, epochs=epochs, steps=steps, verbose=0
        )
        model.stop_training = False
        callbacks.on_train_begin()
        for epoch in range(epochs):
            callbacks.on_epoch_begin(epoch)
            logs, total = {}, 0.0
            for step in range(steps):
                batch = next(feed, None)
                if batch is None:
                    model.stop_training = True
                    break
                callbacks.on_train_batch_begin(step)
                total += float(update(batch))
                logs = {"loss": total / (step + 1)}
                callbacks.on_train_batch_end(step, logs)
                if model.stop_training:
                    break
            callbacks.on_epoch_end(epoch, logs)
            if model.stop_training:
                break
        callbacks.on_train_end(logs)

    def _make_update(self, model: keras.Model, example: Any) -> Callable[[Any], Any]:
        known = {id(weight) for weight in model.weights}
        seeds = [variable for variable in model.variables if id(variable) not in known]
        variables = model.trainable_variables

        def replica(batch: Any) -> Any:
            context = tf.distribute.get_replica_context()
            number = tf.cast(context.replica_id_in_sync_group, tf.int32)
            inputs, targets, weights = self._rows_of(batch, number)
            # Of variables that all replicas share none can be set in one of them.
            drawn_from = [(seed, _own_seed(seed, number)) for seed in seeds]
            with (
                keras.StatelessScope(state_mapping=drawn_from) as scope,
                tf.GradientTape() as tape,
            ):
                outputs = model(inputs, training=True)
                loss = model.compute_loss(
                    x=inputs, y=targets, y_pred=outputs, sample_weight=weights, training=True
                )
                scaled = model.optimizer.scale_loss(loss)
            gradients = tape.gradient(scaled, [variable.value for variable in variables])
            there = [backend.dense(gradient) for gradient in gradients if gradient is not None]
            *there, loss = context.all_reduce("SUM", [*there, loss])
            summed = iter(there)
            gradients = [None if gradient is None else next(summed) for gradient in gradients]
            return gradients, loss, [scope.get_current_value(seed)[1] for seed in seeds]

        def update(batch: Any) -> Any:
            results = self._strategy.run(replica, args=(batch,))
            # They are the same in all replicas.
            gradients, loss, counters = tf.nest.map_structure(
                lambda value: self._strategy.experimental_local_results(value)[0], results
            )
            model.optimizer.apply(gradients, variables)
            for seed, counter in zip(seeds, counters, strict=True):
                seed.assign(tf.stack([seed.value[0], counter]))
            return loss

        signature = tf.nest.map_structure(
            lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), example
        )
        return tf.function(update, input_signature=[signature], autograph=False)

    def _rows_of(self, batch: Any, number: Any) -> Any:
        """A replica's part of its host's batch."""
        place = number - self.host * self.row_multiple

        def part(tensor: Any) -> Any:
            share = tf.shape(tensor)[0] // self.row_multiple
            return tensor[place * share : (place + 1) * share]

        return tf.nest.map_structure(part, batch)

    def largest(self, values: Numbers) -> np.ndarray:
        array = np.asarray(values, np.float64)
        if self.hosts == 1:
            return array
        rows = np.zeros((self.hosts, len(array)), np.int64)
        # As whole numbers, of which sums with zeros are exact, infinity included.
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

    _total: Any = None


def _own_seed(seed: Any, number: Any) -> Any:
    """A seed generator's state as a replica starts from it; the first replica from what it is."""
    state = tf.convert_to_tensor(seed.value)
    step = tf.cast(number, state.dtype) * tf.constant(_SEED_STEP, state.dtype)
    return tf.stack([tf.bitwise.bitwise_xor(state[0], step), state[1]])
