"""The moving average of the weights in the place of the weights."""

from collections.abc import Iterator
from contextlib import contextmanager

import keras

from keras_seq import backend


@contextmanager
def averaged_weights(model: keras.Model) -> Iterator[None]:
    """While entered, the model has the moving average that its optimizer keeps.

    Without one (`use_ema` off, or no update yet) the weights stay what they are.
    Afterwards they are again what they were, to the last bit.

    Args:
        model: A compiled model whose optimizer is built.

    Example:

    >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    >>> model.compile(keras.optimizers.Adam(use_ema=True), "mse")
    >>> model.optimizer.build(model.trainable_variables)
    >>> with averaged_weights(model):
    ...     loss = model.evaluate(keras.ops.ones((1, 2)), keras.ops.ones((1, 1)), verbose=0)
    """
    optimizer = model.optimizer
    # Before the first update the averages are zeros.
    if not optimizer.use_ema or not int(backend.to_numpy(optimizer.iterations)):
        yield
        return
    # Not by `SwapEMAWeights`, which on TensorFlow swaps by sums and differences: these round, and
    # each look at the average would change the training.
    variables = model.trainable_variables
    weights = [backend.to_numpy(variable) for variable in variables]
    optimizer.finalize_variable_values(variables)
    try:
        yield
    finally:
        for variable, weight in zip(variables, weights, strict=True):
            variable.assign(weight)
