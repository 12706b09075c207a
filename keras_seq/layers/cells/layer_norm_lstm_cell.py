"""LSTM cell with layer normalization."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_seq.layers.cells.normalization import norm_layer, normalizer
from keras_seq.layers.cells.recurrent_cell import LSTMBase, same_dtype
from keras_seq.layers.internal.checks import check_choice
from keras_seq.layers.internal.weight_arguments import Initializer


@keras.saving.register_keras_serializable(package="keras_seq")
class LayerNormLSTMCell(LSTMBase):
    """LSTM cell with layer normalization of its matrix products and its cell state.

        i, f, c~, o = LN_1(x W) + LN_2(h U) + b
        n  = sigmoid(f) * c + sigmoid(i) * tanh(c~)
        h' = sigmoid(o) * tanh(LN_3(n))
        c' = LN_3(n)    carry="normalized", as in `tfa.rnn.LayerNormLSTMCell`
        c' = n          carry="plain", as in the paper

    Each LN has its own gain gamma and shift beta. Normalization keeps activations in range over
    long sequences and often speeds up training. `keras_seq.layers.RNN` computes LN_1(x W) of all
    steps at once.

    The weights are kernel, recurrent_kernel and bias, then gamma and beta of kernel_norm,
    recurrent_norm and state_norm: the layout of `tfa.rnn.LayerNormLSTMCell`.

    Args:
        units: Positive integer U.
        carry: "normalized" or "plain". Defaults to "normalized".
        norm_epsilon: Float added to the variance. Defaults to 1e-3.
        norm_gamma_initializer, norm_beta_initializer: Initializers of the gains and the shifts.
        kwargs: Further arguments of `LSTMCell` other than `output_activation`.

    Shapes, call arguments and outputs are those of `LSTMCell`.

    Raises:
        ValueError: As for `LSTMCell`, and if `carry` has another value.

    Example:

    >>> outputs = RNN(LayerNormLSTMCell(4, dropout=0.1))(keras.ops.ones((2, 7, 3)))
    >>> tuple(outputs.shape)
    (2, 4)

    Reference:
        Ba, Kiros and Hinton, "Layer Normalization", 2016, equations 20 to 22,
        https://arxiv.org/abs/1607.06450
    """

    def __init__(
        self,
        units: int,
        carry: str = "normalized",
        norm_epsilon: float = 1e-3,
        norm_gamma_initializer: Initializer = "ones",
        norm_beta_initializer: Initializer = "zeros",
        **kwargs: Any,
    ) -> None:
        check_choice("carry", carry, ("normalized", "plain"))
        super().__init__(units, **kwargs)
        self.carry = carry
        self.norm_epsilon = norm_epsilon
        self.norm_gamma_initializer = keras.initializers.get(norm_gamma_initializer)
        self.norm_beta_initializer = keras.initializers.get(norm_beta_initializer)
        self.kernel_norm = norm_layer(self, "kernel_norm")
        self.recurrent_norm = norm_layer(self, "recurrent_norm")
        self.state_norm = norm_layer(self, "state_norm")

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        self.kernel_norm.build((None, 4 * self.units))
        self.recurrent_norm.build((None, 4 * self.units))
        self.state_norm.build((None, self.units))

    def input_transform(self) -> Callable[[Any], Any]:
        # Both betas and the bias are added here, once for all steps.
        shifts = [self.kernel_norm.beta, self.recurrent_norm.beta, self.bias]
        return normalizer(self.kernel_norm, shifts)

    def loop_constants(self, matmul: Any) -> dict[str, Any]:
        normalize, recurrent = normalizer(self.recurrent_norm, []), matmul(self.recurrent_kernel)
        return {
            "recurrent": lambda hidden: normalize(recurrent(hidden)),
            "normalize_carry": normalizer(self.state_norm, [self.state_norm.beta]),
        }

    def step(self, inputs: Any, states: Any, recurrent: Any, normalize_carry: Any) -> Any:
        hidden, carry = states
        tanh, sigmoid = same_dtype(self.activation), same_dtype(self.recurrent_activation)
        gates = inputs + recurrent(hidden)  # (B, 4U)
        update, forget, candidate, output = ops.split(gates, 4, axis=-1)
        carry = sigmoid(forget) * carry + sigmoid(update) * tanh(candidate)
        normalized = normalize_carry(carry)
        hidden = sigmoid(output) * tanh(normalized)
        return hidden, [hidden, normalized if self.carry == "normalized" else carry]
