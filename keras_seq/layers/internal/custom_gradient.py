"""Custom gradients that work alike on every Keras backend."""

import functools
from collections.abc import Callable
from typing import Any

from keras import ops


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function whose gradient is written by hand.

    `keras.ops.custom_gradient` calls the gradient function as `gradient(upstream)` on TensorFlow
    and JAX, and as `gradient(*inputs, upstream=upstream)` on torch. Here every backend calls
    `gradient(upstream)`.

    The function returns `(output, gradient)`; `output` must be one tensor, because Keras' torch
    backend supports no more. `gradient` returns the gradient with respect to each input: a tensor
    if there is one input, else a tuple, whose entries may be None.

    Example:

    >>> import keras
    >>> @custom_gradient
    ... def square(x):
    ...     return x * x, lambda upstream: 2 * x * upstream
    >>> float(square(keras.ops.array(3.0)))
    9.0
    """

    @functools.wraps(function)
    def with_backend_convention(*inputs: Any) -> Any:
        output, gradient = function(*inputs)
        if isinstance(output, (tuple, list, dict)):
            raise TypeError(
                f"`{function.__name__}` returned several outputs ({type(output).__name__}), "
                "expected one tensor: a custom gradient has one output on every backend."
            )

        def from_backend(*arguments: Any, upstream: Any = None) -> Any:
            # torch passes `upstream` by name, and the inputs as positional arguments.
            return gradient(arguments[0] if upstream is None else upstream)

        return output, from_backend

    return ops.custom_gradient(with_backend_convention)
