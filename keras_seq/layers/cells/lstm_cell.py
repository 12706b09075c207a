"""Long short-term memory cell."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.cells.conversion import keras_cell_of, shared_options, weight_arrays
from keras_seq.layers.cells.lstm_base import LSTMBase
from keras_seq.layers.cells.recurrent_cell import Activation, same_dtype


@keras.saving.register_keras_serializable(package="keras_seq")
class LSTMCell(LSTMBase):
    """Long short-term memory cell.

        i, f, o = sigmoid(x W + h U + b)   for each of the three gates
        c~      = tanh(x W_c + h U_c + b_c)
        c'      = i * c~ + f * c
        h'      = o * g(c')

    Run the cell over sequences with `keras_seq.layers.RNN`. Unlike `keras.layers.LSTMCell` it can
    use another output activation g than that of the candidate, such as the identity
    (`output_activation=None`), and its dropout is drawn before the loop. The weights have the
    layout of the Keras cell: gates in the order i, f, c, o.

    Shapes: B batch, D input features, U units.

    Args:
        units: Positive integer U.
        output_activation: Activation g, or None for the identity. Defaults to "tanh".
        activation: Activation of the candidate c~. Defaults to "tanh".
        recurrent_activation: Activation of the gates. Defaults to "sigmoid".
        unit_forget_bias: Whether the bias of the forget gate starts at 1, so that a new cell
            remembers (Gers et al., 2000). Defaults to True.
        use_bias: Whether to add a bias. Defaults to True.
        kernel_initializer: Initializer of W. Defaults to "glorot_uniform".
        recurrent_initializer: Initializer of U. Defaults to "orthogonal".
        bias_initializer: Initializer of b. Defaults to "zeros".
        dropout: Float in [0, 1), fraction of the inputs dropped in training. One mask serves all
            steps of a sequence (Gal and Ghahramani, 2016). Defaults to 0.
        recurrent_dropout: Float in [0, 1), the same for h where it enters the product. One mask
            serves all gates. Defaults to 0.
        seed: Optional integer that makes the dropout reproducible.

    Call arguments:
        inputs: Float tensor `(B, D)`, one step. A step has no mask; `RNN` skips masked steps.
        states: List of h and c, both `(B, U)`.
        training: Must be false if the cell has dropout; `RNN` applies it.

    Returns:
        output: h', tensor `(B, U)` in the compute dtype.
        states: List of h' and c'.

    Raises:
        ValueError: If `units` is not a positive integer or a dropout is outside [0, 1); at build
            or call if the inputs have the wrong rank or width; if the cell is called in training
            with dropout.

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

    def step(self, inputs, states, recurrent):
        hidden, carry = states
        tanh, sigmoid = same_dtype(self.activation), same_dtype(self.recurrent_activation)
        gates = inputs + recurrent(hidden)  # (B, 4U)
        # Not by slices: the gradient of a split is one concatenation.
        update, forget, candidate, output = ops.split(gates, 4, axis=-1)
        carry = sigmoid(update) * tanh(candidate) + sigmoid(forget) * carry
        hidden = sigmoid(output) * same_dtype(self.output_activation)(carry)
        return hidden, [hidden, carry]

    @classmethod
    def from_keras(cls, source: keras.layers.Layer) -> "LSTMCell":
        """Returns a cell with the options and weights of an LSTM of Keras.

        Args:
            source: A `keras.layers.LSTM` or `keras.layers.LSTMCell`. If it is built, so is the
                new cell.

        Raises:
            ValueError: If `source` is another layer, or has regularizers or constraints.

        >>> LSTMCell.from_keras(keras.layers.LSTM(4, activation="relu")).output_activation.__name__
        'relu'
        """
        keras_cell = keras_cell_of(source, keras.layers.LSTM, keras.layers.LSTMCell)
        options = shared_options(keras_cell)
        cell = cls(keras_cell.units, output_activation=keras_cell.activation, **options)
        return cell.with_weights_of(keras_cell)

    def to_keras(self, **options: Any) -> keras.layers.LSTM:
        """Returns a `keras.layers.LSTM` with the same options and weights, to use cuDNN on a GPU.

        Args:
            options: Further arguments of `keras.layers.LSTM`, such as `return_sequences`.

        Raises:
            ValueError: If `output_activation` differs from `activation`, because Keras uses one
                activation for both.

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
