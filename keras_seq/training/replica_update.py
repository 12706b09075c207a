"""An update of all replicas of a model under `tf.distribute`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_seq import backend


def update_replicas(
    optimizer: keras.optimizers.Optimizer,
    strategy: Any,
    gradients: Sequence[Any],
    variables: Sequence[keras.Variable],
) -> None:
    """Applies gradients to all replicas. `apply` of Keras runs only inside one replica.

    `strategy` is the `tf.distribute` strategy, in a cross-replica context. `gradients` has a tensor
    for each variable, summed over the replicas, or None. Raises ValueError if the optimizer has
    `clipnorm`, `clipvalue` or `weight_decay`.
    """
    if optimizer.clipnorm or optimizer.clipvalue or optimizer.weight_decay is not None:
        raise ValueError(
            f"{type(optimizer).__name__} supports neither `clipnorm`, `clipvalue` nor "
            "`weight_decay` on several devices: use `global_clipnorm`, or train on one device."
        )
    factor = 1.0
    if limit := optimizer.global_clipnorm:
        factor = limit / ops.maximum(ops.sqrt(sum_of_squares(gradients)), limit)

    def update_replica(variable: Any, gradient: Any, learning_rate: Any) -> None:
        optimizer.update_step(gradient, variable, learning_rate)

    learning_rate = optimizer.learning_rate
    for gradient, variable in zip(gradients, variables, strict=True):
        if gradient is not None:
            clipped = gradient * ops.cast(factor, gradient.dtype)
            strategy.extended.update(
                variable.value, update_replica, args=(clipped, learning_rate), group=False
            )
    optimizer.iterations.assign_add(1)


def sum_of_squares(gradients: Sequence[Any]) -> Any:
    """The sum of the squares of all gradients that are not None."""
    return backend.sum_of_squares([gradient for gradient in gradients if gradient is not None])
