"""The cell that a search over architectures found."""

import keras
from keras import ops

from keras_seq.layers.cells.recurrent_cell import RecurrentCell, activation_of, check_units
from keras_seq.layers.internal.attention_scores import tanh
from keras_seq.layers.internal.step_loop import read_once

# Shape letters: B batch, D input features, U units, P output features.

sigmoid = activation_of(keras.activations.sigmoid)
relu = activation_of(keras.activations.relu)


@keras.saving.register_keras_serializable(package="keras_seq")
class NASCell(RecurrentCell):
    """One step of the cell found by architecture search (Zoph and Le, 2017).

        a_k = x W_k,  b_k = h U_k,  k = 0 ... 7
        m_0 = tanh(sigmoid(a_0 + b_0) * relu(a_1 + b_1))
        m_1 = tanh(sigmoid(a_2 + b_2) + relu(a_3 * b_3))
        m_2 = tanh(tanh(a_4 + b_4) * sigmoid(a_5 + b_5))
        m_3 = sigmoid(tanh(a_6 + b_6) + sigmoid(a_7 + b_7))
        c'  = tanh(m_0 + c) * m_1
        h'  = tanh(c' * tanh(m_2 + m_3)), times P with a projection

    With a bias b_k = h U_k + d_k.

    The arithmetic is that of `tfa.rnn.NASCell`. The states are in the order h,
    c, the output first as in all cells here, where that cell has c, h; and the
    weights are in the order kernel, recurrent_kernel, bias, projection, where
    that cell has its recurrent kernel first.

    Shapes: B batch, D input features, U units, P output features.

    Args:
        units: Positive integer U.
        projection: Positive integer P, the width of a projected output, or
            None for U without one. Defaults to None.
        use_bias: Whether there is a bias. Defaults to False.
        kernel_initializer: Of W. Defaults to "glorot_uniform".
        recurrent_initializer: Of U. Defaults to "glorot_uniform".
        bias_initializer: Of the bias. Defaults to "zeros".
        projection_initializer: Of the projection. Defaults to "glorot_uniform".
        kwargs: As in `GRUCell`: dropout, recurrent_dropout, seed.

    Call arguments:
        inputs: Float tensor `(B, D)`.
        states: List of h `(B, P)` and c `(B, U)`.
        training: With dropout this must be false: masks are drawn before a
            loop, by `keras_seq.layers.RNN`.

    Returns:
        output: h', tensor `(B, P)` in the compute dtype.
        states: List of h' and c'.

    Masks: a step has none; `keras_seq.layers.RNN` steps over what is masked.

    Raises:
        ValueError: If `units` or `projection` is not a positive integer; at
            build and call for inputs of another rank or width.

    Example:

    >>> outputs = RNN(NASCell(4, projection=2))(keras.ops.ones((2, 7, 3)))
    >>> tuple(outputs.shape)
    (2, 2)

    Reference:
        Zoph and Le, "Neural Architecture Search with Reinforcement Learning",
        ICLR 2017, appendix A, https://arxiv.org/abs/1611.01578
    """

    gates = 8

    def __init__(
        self,
        units,
        projection=None,
        use_bias=False,
        kernel_initializer="glorot_uniform",
        recurrent_initializer="glorot_uniform",
        bias_initializer="zeros",
        projection_initializer="glorot_uniform",
        **kwargs,
    ):
        if projection is not None:
            check_units(projection, "projection")
        super().__init__(
            units,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer,
            bias_initializer=bias_initializer,
            **kwargs,
        )
        self.projection = projection
        self.projection_initializer = keras.initializers.get(projection_initializer)

    @property
    def output_size(self):
        return self.projection or self.units

    @property
    def state_size(self):
        return [self.output_size, self.units]

    def build(self, input_shape):
        super().build(input_shape)
        if self.projection is not None:
            self.projection_kernel = self.add_weight(
                name="projection",
                shape=(self.units, self.projection),
                initializer=self.projection_initializer,
            )

    def reader(self):
        return lambda product: product

    def lay_out(self, matrix):
        laid_out = super().lay_out(matrix)
        if self.bias is not None:
            laid_out["bias"] = read_once(self.bias)
        if self.projection is not None:
            laid_out["project"] = matrix(self.projection_kernel, drops=False)
        return laid_out

    def advance(self, inputs, states, recurrent, bias=None, project=None):
        hidden, carry = states
        inner = recurrent(hidden)
        if bias is not None:
            inner = inner + bias
        sums = ops.split(inputs + inner, 8, axis=-1)
        _, factor, _ = ops.split(inputs, [3 * self.units, 4 * self.units], axis=-1)
        _, inner_factor, _ = ops.split(inner, [3 * self.units, 4 * self.units], axis=-1)
        first = tanh(sigmoid(sums[0]) * relu(sums[1]))
        second = tanh(sigmoid(sums[2]) + relu(factor * inner_factor))
        third = tanh(tanh(sums[4]) * sigmoid(sums[5]))
        fourth = sigmoid(tanh(sums[6]) + sigmoid(sums[7]))
        carry = tanh(first + carry) * second
        hidden = tanh(carry * tanh(third + fourth))
        if project is not None:
            hidden = project(hidden)
        return hidden, [hidden, carry]

    def get_config(self):
        return {
            **super().get_config(),
            "projection": self.projection,
            "projection_initializer": keras.initializers.serialize(self.projection_initializer),
        }
