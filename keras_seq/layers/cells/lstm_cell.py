"""Long short-term memory cell."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.cells.conversion import keras_cell_of, shared_options, weight_arrays
from keras_seq.layers.cells.recurrent_cell import Activation, LSTMBase, same_dtype


@keras.saving.register_keras_serializable(package="keras_seq")
class LSTMCell(LSTMBase):
    """Long short-term memory cell.

        i, f, o = sigmoid(x W + h U + b)   for each of the three gates
        c~      = tanh(x W_c + h U_c + b_c)
        c'      = i * c~ + f * c
        h'      = o * g(c')

    Run the cell over sequences with `keras_seq.layers.RNN`. Unlike in `keras.layers.LSTMCell`, the
    output activation g can differ from the activation of the candidate, such as the identity
    (`output_activation=None`), and the dropout is drawn before the loop. The weights have the
    layout of the Keras cell: gates in the order i, f, c, o.

    Shapes: B batch, D input features, U units.

    Args:
        units: Positive integer U.
        output_activation: Activation g, or None for the identity. Defaults to "tanh".
        activation: Activation of the candidate c~. Defaults to "tanh".
        recurrent_activation: Activation of the gates. Defaults to "sigmoid".
        unit_forget_bias: Whether the bias of the forget gate starts at 1, so that a new cell
            remembers (Gers et al., 2000). Defaults to True.
        use_bias, dropout, recurrent_dropout, seed, and initializers and regularizers: As in
            `GRUCell`.

    Call arguments and outputs are those of `GRUCell`, with h and c as states, both `(B, U)`.

    Raises:
        ValueError: As for `GRUCell`.

    Example:

    >>> cell = LSTMCell(4, output_activation=None)
    >>> outputs, hidden, carry = RNN(cell, return_sequences=True, return_state=True)(
    ...     keras.ops.ones((2, 7, 3)))
    >>> tuple(outputs.shape), tuple(carry.shape)
    ((2, 7, 4), (2, 4))

    Reference:
        Hochreiter and Schmidhuber, "Long Short-Term Memory", Neural Computation 1997; Gers,
        Schmidhuber and Cummins, "Learning to Forget", Neural Computation 2000; Gal and
        Ghahramani, 2016, https://arxiv.org/abs/1512.05287
    """

    def __init__(self, units: int, output_activation: Activation = "tanh", **kwargs: Any) -> None:
        super().__init__(units, **kwargs)
        self.output_activation = keras.activations.get(output_activation)

    def step(self, inputs: Any, states: Any, recurrent: Any) -> Any:
        hidden, carry = states
        tanh, sigmoid = same_dtype(self.activation), same_dtype(self.recurrent_activation)
        gates = inputs + recurrent(hidden)  # (B, 4U)
        # Not with slices, because the gradient of a split is a single concatenation.
        update, forget, candidate, output = ops.split(gates, 4, axis=-1)
        carry = sigmoid(update) * tanh(candidate) + sigmoid(forget) * carry
        hidden = sigmoid(output) * same_dtype(self.output_activation)(carry)
        return hidden, [hidden, carry]

    @classmethod
    def from_keras(cls, source: keras.layers.Layer) -> "LSTMCell":
        """Returns a cell with the options and weights of a `keras.layers.LSTM` or `LSTMCell`.

        The new cell is built if `source` is. Raises ValueError if `source` is another layer, or has
        constraints.

        >>> LSTMCell.from_keras(keras.layers.LSTM(4, activation="relu")).output_activation.__name__
        'relu'
        """
        keras_cell = keras_cell_of(source, keras.layers.LSTM, keras.layers.LSTMCell)
        options = shared_options(keras_cell)
        cell = cls(keras_cell.units, output_activation=keras_cell.activation, **options)
        return cell.with_weights_of(keras_cell)

    def to_keras(self, **options: Any) -> keras.layers.LSTM:
        """Returns a `keras.layers.LSTM` with the same options and weights, to use cuDNN on a GPU.

        `options` are further arguments of `keras.layers.LSTM`, such as `return_sequences`. Raises
        ValueError if `output_activation` differs from `activation`: Keras has one for both.

        >>> tuple(LSTMCell(4).to_keras()(keras.ops.ones((2, 7, 3))).shape)
        (2, 4)
        """
        if self.output_activation is not self.activation:
            raise ValueError(
                "keras.layers.LSTM has one activation for candidate and output, this cell has "
                f"{self.activation.__name__!r} and {self.output_activation.__name__!r}: run it in "
                "`keras_seq.layers.RNN`."
            )
        layer = keras.layers.LSTM(self.units, **shared_options(self), **options)
        if self.built:
            layer.build((None, None, self.kernel.shape[0]))
            layer.set_weights(weight_arrays(self))
        return layer
