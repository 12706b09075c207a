"""Simple recurrent cell with layer normalization."""

from collections.abc import Callable
from typing import Any

import keras

from keras_seq.layers.cells.normalization import norm_layer, normalizer
from keras_seq.layers.cells.recurrent_cell import Activation, RecurrentCell, same_dtype
from keras_seq.layers.internal.weight_arguments import Initializer


@keras.saving.register_keras_serializable(package="keras_seq")
class LayerNormSimpleRNNCell(RecurrentCell):
    """Simple recurrent cell with layer normalization before its activation.

        h' = tanh(gamma * (s - mean(s)) / sqrt(var(s) + epsilon) + b),  s = x W + h U

    This is `keras.layers.SimpleRNNCell` with a normalization whose shift is the bias. It keeps
    the state in range over long sequences.

    The weights are kernel, recurrent_kernel, bias and gamma: the layout of
    `tfa.rnn.LayerNormSimpleRNNCell`, so its weights can be set directly.

    Args:
        units: Positive integer U.
        activation: Activation of the state. Defaults to "tanh".
        norm_epsilon: Float added to the variance. Defaults to 1e-5.
        norm_gamma_initializer: Initializer of the gain. Defaults to "ones".
        kwargs: `use_bias`, the initializers and regularizers of W, U and b, `dropout`,
            `recurrent_dropout` and `seed`, as in `GRUCell`.

    Shapes, call arguments, outputs and errors are those of `GRUCell`.

    Example:

    >>> tuple(RNN(LayerNormSimpleRNNCell(4))(keras.ops.ones((2, 7, 3))).shape)
    (2, 4)

    Reference:
        Ba et al., 2016, equation 4, https://arxiv.org/abs/1607.06450
    """

    def __init__(
        self,
        units: int,
        activation: Activation = "tanh",
        norm_epsilon: float = 1e-5,
        norm_gamma_initializer: Initializer = "ones",
        **kwargs: Any,
    ) -> None:
        super().__init__(units, **kwargs)
        self.activation = keras.activations.get(activation)
        self.norm_epsilon = norm_epsilon
        self.norm_gamma_initializer = keras.initializers.get(norm_gamma_initializer)
        self.norm = norm_layer(self, "norm", center=False)

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        self.norm.build((None, self.units))

    def input_transform(self) -> Callable[[Any], Any]:
        # `normalize` adds the bias after the normalization.
        return lambda product: product

    def loop_constants(self, matmul: Any) -> dict[str, Any]:
        constants = super().loop_constants(matmul)
        return {**constants, "normalize": normalizer(self.norm, [self.bias])}

    def step(self, inputs: Any, states: Any, recurrent: Any, normalize: Any) -> Any:
        (hidden,) = states
        hidden = same_dtype(self.activation)(normalize(inputs + recurrent(hidden)))
        return hidden, [hidden]
