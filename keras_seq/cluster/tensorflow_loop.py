"""TensorFlow training loop for batches that are split over several cores or devices."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_seq import backend
from keras_seq.cluster.alone import Batches, Cluster

# Updates the weights with one batch and returns the loss.
Update = Callable[[Any], Any]
Updates = contextlib.AbstractContextManager[Update]

# An odd number, far from small numbers. It separates the random seeds of the shards.
_SEED_STEP = 0x1E3779B1


class TensorFlowLoop(Cluster):
    """Abstract training loop that replaces `fit` of Keras.

    Each shard of a batch has its own dropout masks. The optimizer gets the sum of the gradients of
    all shards.
    """

    _made: Any = None

    def fit(self, model: keras.Model, batches: Batches, example: Any, **options: Any) -> None:
        """See `Cluster.fit`. At the end, the weights are not replaced with their average."""
        feed = iter(backend.batch_feed(batches, example))
        epochs, steps = options.get("epochs", 1), options["steps_per_epoch"]
        params = {"epochs": epochs, "steps": steps, "verbose": 0}
        callbacks = keras.callbacks.CallbackList(options.get("callbacks"), model=model, **params)
        model.stop_training = False
        with self._updates(model, example) as update:
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

    def _made_for(self, model: keras.Model, make: Callable[[], Any]) -> Any:
        """Calls `make` once per model, because a training calls `fit` several times."""
        if self._made is None or self._made[0] is not model:
            self._made = model, make()
        return self._made[1]

    def _updates(self, model: keras.Model, example: Any) -> Updates:
        """Returns a context manager that provides the update function."""
        raise NotImplementedError


class ShardGradients:
    """Computes the gradients of a shard of a batch without assigning variables."""

    def __init__(self, model: keras.Model) -> None:
        weights = {id(weight) for weight in model.weights}
        self._model = model
        self._seeds = [variable for variable in model.variables if id(variable) not in weights]
        self.variables = model.trainable_variables

    def __call__(self, shard: Any, number: Any) -> tuple[list[Any], Any, list[Any]]:
        """Computes the gradients of shard `number`, a tuple (inputs, targets, weights).

        Shard 0 uses the same random numbers as an unsplit batch. Returns a gradient or None for
        each of `variables`, the loss, and the counter of each seed generator after the pass. The
        counters are the same for all shards.
        """
        inputs, targets, weights = shard
        model = self._model
        seeds = [(seed, _seed_of_shard(seed, number)) for seed in self._seeds]
        with keras.StatelessScope(state_mapping=seeds) as scope, tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            loss = model.compute_loss(
                x=inputs, y=targets, y_pred=outputs, sample_weight=weights, training=True
            )
            scaled = model.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, [variable.value for variable in self.variables])
        dense = [None if gradient is None else backend.dense(gradient) for gradient in gradients]
        return dense, loss, [scope.get_current_value(seed)[1] for seed in self._seeds]

    def apply(self, gradients: Sequence[Any], counters: Sequence[Any]) -> None:
        """Updates weights with summed gradients, and seed generators with a shard's counters."""
        self._model.optimizer.apply(gradients, self.variables)
        for seed, counter in zip(self._seeds, counters, strict=True):
            seed.assign(tf.stack([seed.value[0], counter]))


def signature_of(example: Any) -> Any:
    """The signature of a function that is traced once for batches of all sizes."""
    return tf.nest.map_structure(
        lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), example
    )


def _seed_of_shard(seed: Any, number: Any) -> Any:
    """Returns the state of a seed generator for a shard. Shard 0 uses the state unchanged."""
    state = tf.convert_to_tensor(seed.value)
    step = tf.cast(number, state.dtype) * tf.constant(_SEED_STEP, state.dtype)
    return tf.stack([tf.bitwise.bitwise_xor(state[0], step), state[1]])
