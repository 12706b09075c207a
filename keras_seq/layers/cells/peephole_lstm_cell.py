"""LSTM cell with peephole connections."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.cells.recurrent_cell import LSTMBase, same_dtype
from keras_seq.layers.internal.step_loop import read_once


@keras.saving.register_keras_serializable(package="keras_seq")
class PeepholeLSTMCell(LSTMBase):
    """LSTM cell whose gates also read the cell state.

        i  = sigmoid(x W_i + h U_i + p_i * c + b_i)
        f  = sigmoid(x W_f + h U_f + p_f * c + b_f)
        c' = f * c + i * tanh(x W_c + h U_c + b_c)
        o  = sigmoid(x W_o + h U_o + p_o * c' + b_o)
        h' = o * tanh(c')

    The output gate reads the new cell state. With peepholes a cell can time events precisely: it
    tells apart spikes 49 and 50 steps away, which an LSTM with a closed output gate cannot.

    The weights are kernel, recurrent_kernel and bias with gates as in `LSTMCell`, then p_i, p_f
    and p_o. This is the layout of `tfa.rnn.PeepholeLSTMCell`, so its weights can be set directly.

    Args:
        units: Positive integer U.
        kwargs: Further arguments of `LSTMCell` other than `output_activation`. `activation` is the
            activation of the candidate and the cell state. The initializer and the regularizer of
            the kernel also apply to p.

    Shapes, call arguments, outputs and errors are those of `LSTMCell`.

    Example:

    >>> tuple(RNN(PeepholeLSTMCell(4))(keras.ops.ones((2, 7, 3))).shape)
    (2, 4)

    Reference:
        Gers and Schmidhuber, "Recurrent Nets that Time and Count", IJCNN 2000; Sak, Senior and
        Beaufays, 2014, equations 1 to 6, https://arxiv.org/abs/1402.1128
    """

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)

        def row_of_draw(row: int) -> Any:
            # An initializer with a seed returns the same numbers in every call.
            return lambda shape, dtype=None: self.kernel_initializer((3, *shape), dtype=dtype)[row]

        self.peepholes = [
            self.add_weight(
                name=f"{gate}_gate_peephole_weights",
                shape=(self.units,),
                initializer=row_of_draw(row),
                regularizer=self.kernel_regularizer,
            )
            for row, gate in enumerate(("input", "forget", "output"))
        ]

    def loop_constants(self, matmul: Any) -> dict[str, Any]:
        peephole = ops.concatenate([read_once(weight) for weight in self.peepholes[:2]])
        return {
            **super().loop_constants(matmul),
            "peephole": peephole,
            "output_peephole": read_once(self.peepholes[2]),
        }

    def step(
        self, inputs: Any, states: Any, recurrent: Any, peephole: Any, output_peephole: Any
    ) -> Any:
        hidden, carry = states
        tanh, sigmoid = same_dtype(self.activation), same_dtype(self.recurrent_activation)
        gates, candidate, output = ops.split(
            inputs + recurrent(hidden), [2 * self.units, 3 * self.units], axis=-1
        )  # (B, 2U), (B, U), (B, U)
        gates = sigmoid(gates + peephole * ops.concatenate([carry, carry], axis=-1))
        update, forget = ops.split(gates, 2, axis=-1)
        carry = forget * carry + update * tanh(candidate)
        hidden = sigmoid(output + output_peephole * carry) * tanh(carry)
        return hidden, [hidden, carry]
