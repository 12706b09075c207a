"""Constructor arguments for kernels and biases, named as in Keras."""

from collections.abc import Callable
from typing import Any

import keras

from keras_seq.layers.internal.configured_layer import ConfiguredLayer

# The argument types of `keras.initializers.get` and `keras.regularizers.get`.
Initializer = str | dict[str, Any] | Callable[..., Any]
Regularizer = str | dict[str, Any] | Callable[..., Any] | None


def new_initializer(initializer: Initializer) -> Any:
    """Returns an initializer for one more weight.

    Unless it has a seed, it draws other numbers than those for the other weights. Keras draws the
    seed here, so a layer calls this function when it adds the weight.
    """
    if isinstance(initializer, keras.initializers.Initializer):
        return initializer.clone()
    return keras.initializers.get(initializer)


class KernelArguments(ConfiguredLayer):
    """Abstract layer with an initializer and a regularizer of its kernels."""

    def __init__(
        self,
        kernel_initializer: Initializer = "glorot_uniform",
        kernel_regularizer: Regularizer = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.kernel_initializer: Any = kernel_initializer
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)

    def kernel_arguments(self) -> dict[str, Any]:
        """Returns the arguments, to pass on to an inner layer."""
        return {
            "kernel_initializer": self.kernel_initializer,
            "kernel_regularizer": self.kernel_regularizer,
        }

    def _add_kernel(self, name: str, shape: Any, initializer: Any = None) -> None:
        """Adds a kernel as the attribute `name`. `initializer` replaces that of the argument."""
        weight = self.add_weight(
            name=name,
            shape=shape,
            initializer=initializer or new_initializer(self.kernel_initializer),
            regularizer=self.kernel_regularizer,
        )
        setattr(self, name, weight)


class BiasArguments(ConfiguredLayer):
    """Abstract layer with an initializer and a regularizer of its biases, which are optional."""

    def __init__(
        self,
        use_bias: bool = True,
        bias_initializer: Initializer = "zeros",
        bias_regularizer: Regularizer = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.use_bias = use_bias
        self.bias_initializer: Any = bias_initializer
        self.bias_regularizer = keras.regularizers.get(bias_regularizer)

    def bias_arguments(self) -> dict[str, Any]:
        """Returns the arguments, to pass on to an inner layer."""
        return {
            "use_bias": self.use_bias,
            "bias_initializer": self.bias_initializer,
            "bias_regularizer": self.bias_regularizer,
        }

    def _add_bias(self, name: str, shape: Any, initializer: Any = None) -> None:
        """Adds a bias as the attribute `name`, which is None with `use_bias=False`."""
        weight = None
        if self.use_bias:
            weight = self.add_weight(
                name=name,
                shape=shape,
                initializer=initializer or new_initializer(self.bias_initializer),
                regularizer=self.bias_regularizer,
            )
        setattr(self, name, weight)


class WeightArguments(BiasArguments, KernelArguments):
    """Abstract layer with the arguments of kernels and biases."""

    def weight_arguments(self) -> dict[str, Any]:
        """Returns the arguments, to pass on to an inner layer."""
        return {**self.kernel_arguments(), **self.bias_arguments()}
