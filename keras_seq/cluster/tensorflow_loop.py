"""`fit` under TensorFlow where a batch has several parts; what an update is, subclasses say."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_seq import backend
from keras_seq.cluster.alone import Cluster, PartsOf

# A function of a batch that makes an update, and gives its loss.
Update = Callable[[Any], Any]

# An odd number far from small ones, by which parts draw otherwise.
_SEED_STEP = 0x1E3779B1


class TensorFlowLoop(Cluster):
    """A loop of our own in place of Keras' `fit`.

    Each part of a batch draws its dropout from numbers of its own. Gradients are added up
    over all parts before the optimizer is asked for an update.
    """

    def fit(
        self,
        model: keras.Model,
        batches: Callable[[], Iterator[Any]],
        example: Any,
        split_batch: PartsOf,
        **options: Any,
    ) -> None:
        """As `Cluster.fit`; at its end the weights are what they are, and not their average."""
        feed = iter(backend.batch_feed(batches, example))
        epochs, steps = options.get("epochs", 1), options["steps_per_epoch"]
        callbacks = keras.callbacks.CallbackList(
            options.get("callbacks"), model=model, epochs=epochs, steps=steps, verbose=0
        )
        model.stop_training = False
        with self._updates(model, example, split_batch) as update:
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
        """What `make` gives, once for a model: rehearsals and a training are several `fit`."""
        if self._made is None or self._made[0] is not model:
            self._made = model, make()
        return self._made[1]

    _made: Any = None

    def _updates(
        self, model: keras.Model, example: Any, split_batch: PartsOf
    ) -> contextlib.AbstractContextManager[Update]:
        """What makes updates, while this is entered."""
        raise NotImplementedError


class PartialGradients:
    """The gradients of a part of a batch; sets no variable.

    Args:
        model: Compiled, its optimizer built.
    """

    def __init__(self, model: keras.Model) -> None:
        known = {id(weight) for weight in model.weights}
        self._model = model
        self._seeds = [variable for variable in model.variables if id(variable) not in known]
        self.variables = model.trainable_variables

    def __call__(self, part: Any, number: Any) -> tuple[list[Any], Any, list[Any]]:
        """Computes them.

        Args:
            part: Inputs, targets and weights.
            number: Int32 scalar, its place among the parts; the first draws what would be
                drawn if there were no others.

        Returns:
            A gradient or None for each of `variables`, the loss, and how often each seed
            was drawn from, which is the same in all parts.
        """
        inputs, targets, weights = part
        model = self._model
        drawn_from = [(seed, _own_seed(seed, number)) for seed in self._seeds]
        with (
            keras.StatelessScope(state_mapping=drawn_from) as scope,
            tf.GradientTape() as tape,
        ):
            outputs = model(inputs, training=True)
            loss = model.compute_loss(
                x=inputs, y=targets, y_pred=outputs, sample_weight=weights, training=True
            )
            scaled = model.optimizer.scale_loss(loss)
        gradients = tape.gradient(scaled, [variable.value for variable in self.variables])
        dense = [None if gradient is None else backend.dense(gradient) for gradient in gradients]
        return dense, loss, [scope.get_current_value(seed)[1] for seed in self._seeds]

    def apply(self, gradients: Sequence[Any], counters: Sequence[Any]) -> None:
        """Makes an update.

        Args:
            gradients: The sums over all parts.
            counters: Those of one part.
        """
        self._model.optimizer.apply(gradients, self.variables)
        for seed, counter in zip(self._seeds, counters, strict=True):
            seed.assign(tf.stack([seed.value[0], counter]))


def signature_of(example: Any) -> Any:
    """What a function takes that is traced once for batches of all sizes."""
    return tf.nest.map_structure(
        lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), example
    )


def _own_seed(seed: Any, number: Any) -> Any:
    """A seed generator's state as a part starts from it; the first part from what it is."""
    state = tf.convert_to_tensor(seed.value)
    step = tf.cast(number, state.dtype) * tf.constant(_SEED_STEP, state.dtype)
    return tf.stack([tf.bitwise.bitwise_xor(state[0], step), state[1]])
