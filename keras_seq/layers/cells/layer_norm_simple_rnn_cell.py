"""A simple recurrent cell with layer normalisation."""

import keras

from keras_seq.layers.cells.normalization import norm_layer, normalizer
from keras_seq.layers.cells.recurrent_cell import RecurrentCell, activation_of

# Shape letters: B batch, D input features, U units.


@keras.saving.register_keras_serializable(package="keras_seq")
class LayerNormSimpleRNNCell(RecurrentCell):
    """One step of a simple recurrent network with layer normalisation (Ba et al., 2016).

        h' = tanh(gamma * (s - mean(s)) / sqrt(var(s) + epsilon) + b),  s = x W + h U

    The bias is the shift of the normalisation. Without the normalisation this
    is `keras.layers.SimpleRNNCell`. Weights in order: kernel,
    recurrent_kernel, bias, gamma, as in `tfa.rnn.LayerNormSimpleRNNCell`,
    whose weights can be set as they are.

    Shapes: B batch, D input features, U units.

    Args:
        units: Positive integer U.
        activation: Defaults to "tanh".
        norm_epsilon: Float, added to the variance. Defaults to 1e-5.
        norm_gamma_initializer: Of the gain. Defaults to "ones".
        kwargs: As in `GRUCell`: use_bias, kernel_initializer,
            recurrent_initializer, bias_initializer, dropout,
            recurrent_dropout, seed.

    Call arguments:
        inputs: Float tensor `(B, D)`.
        states: List of h `(B, U)`.
        training: With dropout this must be false: masks are drawn before a
            loop, by `keras_seq.layers.RNN`.

    Returns:
        output: h', tensor `(B, U)` in the compute dtype.
        states: List of h'.

    Masks: a step has none; `keras_seq.layers.RNN` steps over what is masked.

    Raises:
        ValueError: As `GRUCell`.

    Example:

    >>> outputs = RNN(LayerNormSimpleRNNCell(4))(keras.ops.ones((2, 7, 3)))
    >>> tuple(outputs.shape)
    (2, 4)

    Reference:
        Ba, Kiros and Hinton, "Layer Normalization", 2016, equation 4,
        https://arxiv.org/abs/1607.06450
    """

    def __init__(
        self, units, activation="tanh", norm_epsilon=1e-5, norm_gamma_initializer="ones", **kwargs
    ):
        super().__init__(units, **kwargs)
        self.activation = keras.activations.get(activation)
        self.norm_epsilon = norm_epsilon
        self.norm_gamma_initializer = keras.initializers.get(norm_gamma_initializer)
        self.norm = norm_layer(self, "norm", center=False)

    def build(self, input_shape):
        super().build(input_shape)
        self.norm.build((None, self.units))

    def reader(self):
        return lambda product: product

    def lay_out(self, matrix):
        return {**super().lay_out(matrix), "normalize": normalizer(self.norm, [self.bias])}

    def advance(self, inputs, states, recurrent, normalize):
        (hidden,) = states
        hidden = activation_of(self.activation)(normalize(inputs + recurrent(hidden)))
        return hidden, [hidden]

    def get_config(self):
        return {
            **super().get_config(),
            "activation": keras.activations.serialize(self.activation),
            "norm_epsilon": self.norm_epsilon,
            "norm_gamma_initializer": keras.initializers.serialize(self.norm_gamma_initializer),
        }
