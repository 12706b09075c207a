"""Long short-term memory whose gates see the carry."""

import keras
from keras import ops

from keras_seq.layers.cells.lstm_base import LSTMBase
from keras_seq.layers.cells.recurrent_cell import activation_of
from keras_seq.layers.internal.step_loop import read_once

# Shape letters: B batch, D input features, U units.


@keras.saving.register_keras_serializable(package="keras_seq")
class PeepholeLSTMCell(LSTMBase):
    """One step of an LSTM whose gates see the carry (Gers and Schmidhuber, 2000).

        i  = sigmoid(x W_i + h U_i + p_i * c + b_i)
        f  = sigmoid(x W_f + h U_f + p_f * c + b_f)
        c' = f * c + i * tanh(x W_c + h U_c + b_c)
        o  = sigmoid(x W_o + h U_o + p_o * c' + b_o)
        h' = o * tanh(c')

    The gate of the output looks at the new carry. A cell that sees its carry
    tells apart spikes 49 and 50 steps away, which `keras.layers.LSTMCell`
    cannot when its output gate is shut.

    Weights in order: kernel, recurrent_kernel, bias, with gates as in
    `LSTMCell`, then p_i, p_f, p_o: the layout of `tfa.rnn.PeepholeLSTMCell`,
    whose weights can be set as they are.

    Shapes: B batch, D input features, U units.

    Args:
        units: Positive integer U.
        activation: Of the candidate and the carry. Defaults to "tanh".
        recurrent_activation: Of the gates. Defaults to "sigmoid".
        unit_forget_bias: Whether b_f starts at 1. Defaults to True.
        kwargs: As in `LSTMCell`: use_bias, kernel_initializer (of p too),
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
        ValueError: As `LSTMCell`.

    Example:

    >>> outputs = RNN(PeepholeLSTMCell(4))(keras.ops.ones((2, 7, 3)))
    >>> tuple(outputs.shape)
    (2, 4)

    Reference:
        Gers and Schmidhuber, "Recurrent Nets that Time and Count", IJCNN 2000;
        Sak, Senior and Beaufays, 2014, equations 1 to 6,
        https://arxiv.org/abs/1402.1128
    """

    def build(self, input_shape):
        super().build(input_shape)
        # Rows of one draw: an initializer gives the same numbers whenever it is asked.
        self.peepholes = [
            self.add_weight(
                name=f"{gate}_gate_peephole_weights",
                shape=(self.units,),
                initializer=lambda shape, dtype=None, row=row: self.kernel_initializer(
                    (3, *shape), dtype=dtype
                )[row],
            )
            for row, gate in enumerate(("input", "forget", "output"))
        ]

    def lay_out(self, matrix):
        peephole = ops.concatenate([read_once(weight) for weight in self.peepholes[:2]])
        return {
            **super().lay_out(matrix),
            "peephole": peephole,
            "output_peephole": read_once(self.peepholes[2]),
        }

    def advance(self, inputs, states, recurrent, peephole, output_peephole):
        hidden, carry = states
        tanh, sigmoid = activation_of(self.activation), activation_of(self.recurrent_activation)
        gates, candidate, output = ops.split(
            inputs + recurrent(hidden), [2 * self.units, 3 * self.units], axis=-1
        )  # (B, 2U), (B, U), (B, U)
        gates = sigmoid(gates + peephole * ops.concatenate([carry, carry], axis=-1))
        update, forget = ops.split(gates, 2, axis=-1)
        carry = forget * carry + update * tanh(candidate)
        hidden = sigmoid(output + output_peephole * carry) * tanh(carry)
        return hidden, [hidden, carry]
