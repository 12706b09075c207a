"""The moving average of the weights in the place of the weights."""

from collections.abc import Iterator
from contextlib import contextmanager

import keras


@contextmanager
def averaged_weights(model: keras.Model) -> Iterator[None]:
    """While entered, the model has the moving average that its optimizer keeps.

    Without one (`use_ema` off) the weights stay what they are.

    Args:
        model: A compiled model whose optimizer is built.

    Example:

    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    >>> model.compile(keras.optimizers.Adam(use_ema=True), "mse")
    >>> model.optimizer.build(model.trainable_variables)
    >>> with averaged_weights(model):
    ...     loss = model.evaluate(keras.ops.ones((1, 2)), keras.ops.ones((1, 1)), verbose=0)
    """
    if not model.optimizer.use_ema:
        yield
        return
    swap = keras.callbacks.SwapEMAWeights()
    swap.set_model(model)
    swap.on_test_begin()
    try:
        yield
    finally:
        swap.on_test_end()
