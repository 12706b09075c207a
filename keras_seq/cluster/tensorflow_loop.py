"""A training loop for batches that several cores or devices share, on TensorFlow."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_seq import backend
from keras_seq.cluster.alone import Batches, Cluster

# Makes an update with a batch and returns its loss.
Update = Callable[[Any], Any]
Updates = contextlib.AbstractContextManager[Update]

# An odd number, far from small numbers. It separates the random seeds of the shards.
_SEED_STEP = 0x1E3779B1


class TensorFlowLoop(Cluster):
    """A training loop that replaces `fit` of Keras; abstract.

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
        """Context with the function that makes updates."""
        raise NotImplementedError


class ShardGradients:
    """The gradients of a shard of a batch; assigns no variable."""

    def __init__(self, model: keras.Model) -> None:
        weights = {id(weight) for weight in model.weights}
        self._model = model
        self._seeds = [variable for variable in model.variables if id(variable) not in weights]
        self.variables = model.trainable_variables

    def __call__(self, shard: Any, number: Any) -> tuple[list[Any], Any, list[Any]]:
        """Computes the gradients of the shard (inputs, targets, weights) with this number.

        Shard 0 has the random numbers of a batch that is not split. Returns a gradient or None for
        each of `variables`; the loss; and the counter of each random seed after the pass, which is
        the same for all shards.
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
        """Updates the weights with summed gradients, and the seeds with counters of any shard."""
        self._model.optimizer.apply(gradients, self.variables)
        for seed, counter in zip(self._seeds, counters, strict=True):
            seed.assign(tf.stack([seed.value[0], counter]))


def signature_of(example: Any) -> Any:
    """The signature of a function that is traced once for batches of all sizes."""
    return tf.nest.map_structure(
        lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), example
    )


def _seed_of_shard(seed: Any, number: Any) -> Any:
    """The state of a seed generator for a shard; unchanged for shard 0."""
    state = tf.convert_to_tensor(seed.value)
    step = tf.cast(number, state.dtype) * tf.constant(_SEED_STEP, state.dtype)
    return tf.stack([tf.bitwise.bitwise_xor(state[0], step), state[1]])
