"""Use of the moving average of the weights instead of the weights."""

from collections.abc import Iterator
from contextlib import contextmanager

import keras

from keras_seq import backend


@contextmanager
def averaged_weights(model: keras.Model) -> Iterator[None]:
    """Context in which the weights of a model are the moving average of its optimizer.

    Without an average (no `use_ema`, or no update so far), the weights do not change. On exit, the
    weights are restored exactly.

    Example:

    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    >>> model.compile(keras.optimizers.Adam(use_ema=True), "mse")
    >>> model.optimizer.build(model.trainable_variables)
    >>> with averaged_weights(model):
    ...     loss = model.evaluate(keras.ops.ones((1, 2)), keras.ops.ones((1, 1)), verbose=0)
    """
    optimizer = model.optimizer
    # Before the first update, the averages are zeros.
    if not optimizer.use_ema or not int(backend.to_numpy(optimizer.iterations)):
        yield
        return
    # `SwapEMAWeights` of Keras swaps by sums and differences on TensorFlow. Their rounding would
    # change the weights with each validation.
    variables = model.trainable_variables
    weights = [backend.to_numpy(variable) for variable in variables]
    optimizer.finalize_variable_values(variables)
    try:
        yield
    finally:
        for variable, weight in zip(variables, weights, strict=True):
            variable.assign(weight)
