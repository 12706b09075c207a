"""Long short-term memory."""

import keras
from keras import ops

from keras_seq.layers.cells.conversion import (
    copied,
    refuse_training_aids,
    source_cell,
    with_weights_of,
)
from keras_seq.layers.cells.lstm_base import LSTMBase
from keras_seq.layers.cells.recurrent_cell import activation_of

# Shape letters: B batch, D input features, U units.


@keras.saving.register_keras_serializable(package="keras_seq")
class LSTMCell(LSTMBase):
    """One step of long short-term memory (Hochreiter and Schmidhuber, 1997).

        i, f, o = sigmoid(x W + h U + b)   for each of the three gates
        c~      = tanh(x W_c + h U_c + b_c)
        c'      = i * c~ + f * c
        h'      = o * g(c')

    g is tanh. With `output_activation=None` it is the identity, h' = o * c',
    the form of some lectures. That, and a loop which draws its noise before
    it begins, is what `keras.layers.LSTMCell` has not; weights are laid out as
    there, with gates in the order i, f, c, o.

    Shapes: B batch, D input features, U units.

    Args:
        units: Positive integer U.
        output_activation: g, or None for the identity. Defaults to "tanh".
        activation: Of c~. Defaults to "tanh".
        recurrent_activation: Of the gates. Defaults to "sigmoid".
        unit_forget_bias: Whether b_f starts at 1, so that a cell remembers at
            first (Gers et al., 2000). Defaults to True.
        use_bias: Whether there is a bias. Defaults to True.
        kernel_initializer: Of W. Defaults to "glorot_uniform".
        recurrent_initializer: Of U. Defaults to "orthogonal".
        bias_initializer: Of b. Defaults to "zeros".
        dropout: Float in [0, 1), the share of the inputs dropped in training,
            the same ones at all steps of a sequence (Gal and Ghahramani, 2016).
            Defaults to 0.
        recurrent_dropout: Float in [0, 1), likewise of h where it enters the
            product. One mask serves all gates. Defaults to 0.
        seed: Optional integer, makes the dropout reproducible.

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
        ValueError: If `units` is not a positive integer or a rate is outside
            [0, 1); at build and call for inputs of another rank or width; in
            training with dropout.

    Example:

    >>> cell = LSTMCell(4, output_activation=None)
    >>> outputs, hidden, carry = RNN(cell, return_sequences=True, return_state=True)(
    ...     keras.ops.ones((2, 7, 3)))
    >>> tuple(outputs.shape), tuple(carry.shape)
    ((2, 7, 4), (2, 4))

    Reference:
        Hochreiter and Schmidhuber, "Long Short-Term Memory", Neural
        Computation 1997; Gers, Schmidhuber and Cummins, "Learning to Forget",
        Neural Computation 2000; Gal and Ghahramani, 2016,
        https://arxiv.org/abs/1512.05287
    """

    def __init__(self, units, output_activation="tanh", **kwargs):
        super().__init__(units, **kwargs)
        self.output_activation = keras.activations.get(output_activation)

    def advance(self, inputs, states, recurrent):
        hidden, carry = states
        tanh, sigmoid = activation_of(self.activation), activation_of(self.recurrent_activation)
        gates = inputs + recurrent(hidden)  # (B, 4U)
        # Not by slices: the gradient of a split is one concatenation.
        update, forget, candidate, output = ops.split(gates, 4, axis=-1)
        carry = sigmoid(update) * tanh(candidate) + sigmoid(forget) * carry
        hidden = sigmoid(output) * activation_of(self.output_activation)(carry)
        return hidden, [hidden, carry]

    @classmethod
    def from_keras(cls, source):
        """This cell with the options and weights of Keras' own.

        Args:
            source: A `keras.layers.LSTM` or a `keras.layers.LSTMCell`, built or
                not.

        Returns:
            An `LSTMCell`, built if `source` is.

        Raises:
            ValueError: If `source` is another layer, or has regularizers or
                constraints, which this cell has not.

        >>> LSTMCell.from_keras(keras.layers.LSTM(4, activation="relu")).output_activation.__name__
        'relu'
        """
        theirs = source_cell(source, keras.layers.LSTM, keras.layers.LSTMCell)
        refuse_training_aids(theirs)
        options = copied(theirs, "activation", "recurrent_activation", "unit_forget_bias")
        cell = cls(theirs.units, output_activation=theirs.activation, **options)
        return with_weights_of(theirs, cell)

    def to_keras(self, **options):
        """`keras.layers.LSTM` of the same options and weights, for its kernel on a GPU.

        Args:
            options: Of `keras.layers.LSTM`, as `return_sequences`.

        Returns:
            The layer, built if this cell is; its `cell` is the Keras cell.

        Raises:
            ValueError: If `output_activation` is not `activation`: Keras has
                one for both.

        >>> tuple(LSTMCell(4).to_keras()(keras.ops.ones((2, 7, 3))).shape)
        (2, 4)
        """
        if self.output_activation is not self.activation:
            raise ValueError(
                "keras.layers.LSTM has one activation for candidate and output, this cell has "
                f"{self.activation.__name__!r} and {self.output_activation.__name__!r}: run it in "
                "`keras_seq.layers.RNN`."
            )
        shared = copied(self, "activation", "recurrent_activation", "unit_forget_bias")
        layer = keras.layers.LSTM(self.units, **shared, **options)
        if self.built:
            layer.build((None, None, self.kernel.shape[0]))
            layer.set_weights([keras.ops.convert_to_numpy(weight) for weight in self.weights])
        return layer

    def get_config(self):
        return {
            **super().get_config(),
            "output_activation": keras.activations.serialize(self.output_activation),
        }
