"""Custom gradients that work alike on every Keras backend."""

import functools

from keras import ops


def custom_gradient(function):
    """Decorates a function whose gradient is written by hand.

    This is `keras.ops.custom_gradient` with one calling convention. Keras' backends
    call the gradient function differently: TensorFlow and JAX as
    `gradient(upstream)`, torch as `gradient(*inputs, upstream=upstream)`. Here
    every backend calls `gradient(upstream)`.

    The function must return one tensor, because Keras' torch backend has no gradients
    for several.

    Args:
        function: Takes tensors, returns `(output, gradient)`. `output` is a tensor.
            `gradient` takes the gradient by `output` and returns one gradient for
            each input: a tensor if there is one input, else a tuple. An entry may be
            None.

    Returns:
        A function of the same tensors that returns `output`.

    Raises:
        TypeError: When the decorated function is called and returned several outputs.

    Example:

    >>> import keras
    >>> @custom_gradient
    ... def square(x):
    ...     return x * x, lambda upstream: 2 * x * upstream
    >>> float(square(keras.ops.array(3.0)))
    9.0
    """

    @functools.wraps(function)
    def with_backend_convention(*inputs):
        output, gradient = function(*inputs)
        if isinstance(output, (tuple, list, dict)):
            raise TypeError(
                f"`{function.__name__}` returned several outputs ({type(output).__name__}), "
                "expected one tensor: a custom gradient has one output on every backend."
            )

        def from_backend(*arguments, upstream=None):
            # With `upstream`, the positional arguments are the inputs again.
            return gradient(arguments[0] if upstream is None else upstream)

        return output, from_backend

    return ops.custom_gradient(with_backend_convention)
