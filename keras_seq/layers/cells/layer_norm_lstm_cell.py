"""Long short-term memory with layer normalisation."""

import keras
from keras import ops

from keras_seq.layers.cells.lstm_base import LSTMBase
from keras_seq.layers.cells.normalization import norm_layer, normalizer
from keras_seq.layers.cells.recurrent_cell import activation_of

# Shape letters: B batch, D input features, U units.


@keras.saving.register_keras_serializable(package="keras_seq")
class LayerNormLSTMCell(LSTMBase):
    """One step of an LSTM with layer normalisation (Ba et al., 2016).

        i, f, c~, o = LN_1(x W) + LN_2(h U) + b
        n  = sigmoid(f) * c + sigmoid(i) * tanh(c~)
        h' = sigmoid(o) * tanh(LN_3(n))
        c' = LN_3(n)    with carry="normalized"
        c' = n          with carry="plain"

    Each LN has a gain and a shift of its own. The paper hands on the plain
    carry; `tfa.rnn.LayerNormLSTMCell` the normalised one, whose weights fit
    here as they are, in its order: kernel, recurrent_kernel, bias, then gamma
    and beta of kernel_norm, recurrent_norm and state_norm. Keras has no such
    cell. `keras_seq.layers.RNN` computes LN_1(x W) of all steps at once.

    Shapes: B batch, D input features, U units.

    Args:
        units: Positive integer U.
        carry: "normalized" or "plain". Defaults to "normalized".
        norm_epsilon: Float, added to the variance. Defaults to 1e-3.
        norm_gamma_initializer: Of the gains. Defaults to "ones".
        norm_beta_initializer: Of the shifts. Defaults to "zeros".
        kwargs: As in `LSTMCell`: activation, recurrent_activation,
            unit_forget_bias, use_bias, kernel_initializer,
            recurrent_initializer, bias_initializer, dropout,
            recurrent_dropout, seed.

    Call arguments:
        inputs: Float tensor `(B, D)`.
        states: List of h and c, `(B, U)` each.
        training: With dropout this must be false: masks are drawn before a
            loop, by `keras_seq.layers.RNN`.

    Returns:
        output: h', tensor `(B, U)` in the compute dtype.
        states: List of h' and c'.

    Masks: a step has none; `keras_seq.layers.RNN` steps over what is masked.

    Raises:
        ValueError: As `LSTMCell`, and if `carry` is neither of the two.

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
        units,
        carry="normalized",
        norm_epsilon=1e-3,
        norm_gamma_initializer="ones",
        norm_beta_initializer="zeros",
        **kwargs,
    ):
        if carry not in ("normalized", "plain"):
            raise ValueError(f'`carry` must be "normalized" or "plain", received {carry!r}.')
        super().__init__(units, **kwargs)
        self.carry = carry
        self.norm_epsilon = norm_epsilon
        self.norm_gamma_initializer = keras.initializers.get(norm_gamma_initializer)
        self.norm_beta_initializer = keras.initializers.get(norm_beta_initializer)
        self.kernel_norm = norm_layer(self, "kernel_norm")
        self.recurrent_norm = norm_layer(self, "recurrent_norm")
        self.state_norm = norm_layer(self, "state_norm")

    def build(self, input_shape):
        super().build(input_shape)
        self.kernel_norm.build((None, 4 * self.units))
        self.recurrent_norm.build((None, 4 * self.units))
        self.state_norm.build((None, self.units))

    def reader(self):
        # What is added behind either normalisation is added here, once for all steps.
        shifts = [self.kernel_norm.beta, self.recurrent_norm.beta, self.bias]
        return normalizer(self.kernel_norm, shifts)

    def lay_out(self, matrix):
        normalize, recurrent = normalizer(self.recurrent_norm, []), matrix(self.recurrent_kernel)
        return {
            "recurrent": lambda hidden: normalize(recurrent(hidden)),
            "normalize_carry": normalizer(self.state_norm, [self.state_norm.beta]),
        }

    def advance(self, inputs, states, recurrent, normalize_carry):
        hidden, carry = states
        tanh, sigmoid = activation_of(self.activation), activation_of(self.recurrent_activation)
        gates = inputs + recurrent(hidden)  # (B, 4U)
        update, forget, candidate, output = ops.split(gates, 4, axis=-1)
        carry = sigmoid(forget) * carry + sigmoid(update) * tanh(candidate)
        normalized = normalize_carry(carry)
        hidden = sigmoid(output) * tanh(normalized)
        return hidden, [hidden, normalized if self.carry == "normalized" else carry]

    def get_config(self):
        return {
            **super().get_config(),
            "carry": self.carry,
            "norm_epsilon": self.norm_epsilon,
            "norm_gamma_initializer": keras.initializers.serialize(self.norm_gamma_initializer),
            "norm_beta_initializer": keras.initializers.serialize(self.norm_beta_initializer),
        }
