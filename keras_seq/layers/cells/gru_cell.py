"""Gated recurrent units."""

import keras
from keras import ops

from keras_seq.layers.cells.conversion import (
    copied,
    refuse_training_aids,
    source_cell,
    with_weights_of,
)
from keras_seq.layers.cells.recurrent_cell import RecurrentCell, activation_of
from keras_seq.layers.internal.shapes import add_bias
from keras_seq.layers.internal.step_loop import read_once

# Shape letters: B batch, D input features, U units.


@keras.saving.register_keras_serializable(package="keras_seq")
class GRUCell(RecurrentCell):
    """One step of a gated recurrent unit, in any of its forms (Cho et al., 2014).

    With `reset="after"`, the default and cuDNN's form:

        z  = sigmoid(x W_z + h U_z + b_z)
        r  = sigmoid(x W_r + h U_r + b_r)
        h~ = tanh(x W_h + b_h + r * (h U_h + b'_h))
        h' = z * h + (1 - z) * h~

    With `reset="before"`, as Cho had it: h~ = tanh(x W_h + (r * h) U_h + b_h).
    With `reset="none"`, the minimal unit: h~ = tanh(x W_h + h U_h + b_h), r
    and its weights are not there.

    With `update="write"` the update gate says how much is written and not how
    much is kept, as lectures have it: u = 1 - z, h' = u * h~ + (1 - u) * h.

    `keras.layers.GRUCell` knows the first two, and only with z; the weights of
    these are laid out as there, with gates in the order z, r, h.

    Shapes: B batch, D input features, U units.

    Args:
        units: Positive integer U.
        reset: "after", "before" or "none". Defaults to "after".
        update: "keep" or "write". Defaults to "keep".
        activation: Of h~. Defaults to "tanh".
        recurrent_activation: Of the gates. Defaults to "sigmoid".
        use_bias: Whether there are biases. Defaults to True.
        kernel_initializer: Of W. Defaults to "glorot_uniform".
        recurrent_initializer: Of U. Defaults to "orthogonal".
        bias_initializer: Of the biases. Defaults to "zeros".
        dropout: Float in [0, 1), the share of the inputs dropped in training,
            the same ones at all steps of a sequence (Gal and Ghahramani, 2016).
            Defaults to 0.
        recurrent_dropout: Float in [0, 1), likewise of h where it enters a
            product. One mask serves all gates. Defaults to 0.
        seed: Optional integer, makes the dropout reproducible.

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
        ValueError: If `units` is not a positive integer, `reset` or `update`
            is none of the above or a rate is outside [0, 1); at build and call
            for inputs of another rank or width; in training with dropout.

    Example:

    >>> cell = GRUCell(4, reset="before", update="write")
    >>> output, states = cell(keras.ops.ones((2, 3)), [keras.ops.zeros((2, 4))])
    >>> tuple(output.shape)
    (2, 4)
    >>> outputs = RNN(GRUCell(4), return_sequences=True)(keras.ops.ones((2, 7, 3)))
    >>> tuple(outputs.shape)
    (2, 7, 4)

    Reference:
        Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder
        for Statistical Machine Translation", EMNLP 2014, section 2.3,
        https://arxiv.org/abs/1406.1078; Gal and Ghahramani, "A Theoretically
        Grounded Application of Dropout in Recurrent Neural Networks", NeurIPS
        2016, https://arxiv.org/abs/1512.05287
    """

    def __init__(
        self,
        units,
        reset="after",
        update="keep",
        activation="tanh",
        recurrent_activation="sigmoid",
        **kwargs,
    ):
        if reset not in ("after", "before", "none"):
            raise ValueError(f'`reset` must be "after", "before" or "none", received {reset!r}.')
        if update not in ("keep", "write"):
            raise ValueError(f'`update` must be "keep" or "write", received {update!r}.')
        super().__init__(units, **kwargs)
        self.reset = reset
        self.gates = 2 if reset == "none" else 3
        self.update = update
        self.activation = keras.activations.get(activation)
        self.recurrent_activation = keras.activations.get(recurrent_activation)

    @property
    def bias_shape(self):
        width = self.gates * self.units
        return (2, width) if self.reset == "after" else (width,)

    def reader(self):
        if self.bias is None or self.reset != "after":
            return super().reader()
        bias, gates = read_once(self.bias), 2 * self.units
        # The gates' two biases add up; that of h U_h stays behind the reset gate.
        bias = ops.concatenate([bias[0, :gates] + bias[1, :gates], bias[0, gates:]])
        return lambda product: add_bias(product, bias)

    def lay_out(self, matrix):
        if self.reset == "before":
            kernel, gates = read_once(self.recurrent_kernel), 2 * self.units
            return {
                "recurrent": matrix(kernel[:, :gates]),
                "recurrent_candidate": matrix(kernel[:, gates:]),
            }
        laid_out = super().lay_out(matrix)
        if self.reset == "after" and self.bias is not None:
            laid_out["candidate_bias"] = read_once(self.bias)[1, 2 * self.units :]
        return laid_out

    def advance(self, inputs, states, recurrent, recurrent_candidate=None, candidate_bias=None):
        (hidden,) = states
        tanh, sigmoid = activation_of(self.activation), activation_of(self.recurrent_activation)
        gates = (self.gates - 1) * self.units
        outer_gates, outer = ops.split(inputs, [gates], axis=-1)  # (B, U) or (B, 2U), (B, U)
        if self.reset == "before":
            update, reset = ops.split(sigmoid(outer_gates + recurrent(hidden)), 2, axis=-1)
            candidate = tanh(outer + recurrent_candidate(reset * hidden))
        else:
            inner_gates, inner = ops.split(recurrent(hidden), [gates], axis=-1)
            update = sigmoid(outer_gates + inner_gates)
            if candidate_bias is not None:
                inner = add_bias(inner, candidate_bias)
            if self.reset == "after":
                update, reset = ops.split(update, 2, axis=-1)
                inner = reset * inner
            candidate = tanh(outer + inner)
        if self.update == "keep":
            hidden = candidate + update * (hidden - candidate)
        else:
            hidden = hidden + update * (candidate - hidden)
        return hidden, [hidden]

    @classmethod
    def from_keras(cls, source):
        """This cell with the options and weights of Keras' own.

        Args:
            source: A `keras.layers.GRU` or a `keras.layers.GRUCell`, built or
                not.

        Returns:
            A `GRUCell`, built if `source` is.

        Raises:
            ValueError: If `source` is another layer, or has regularizers or
                constraints, which this cell has not.

        >>> cell = GRUCell.from_keras(keras.layers.GRU(4, reset_after=False))
        >>> cell.reset
        'before'
        """
        theirs = source_cell(source, keras.layers.GRU, keras.layers.GRUCell)
        refuse_training_aids(theirs)
        options = copied(theirs, "activation", "recurrent_activation")
        cell = cls(theirs.units, reset="after" if theirs.reset_after else "before", **options)
        return with_weights_of(theirs, cell)

    def to_keras(self, **options):
        """`keras.layers.GRU` of the same options and weights, for its kernel on a GPU.

        Args:
            options: Of `keras.layers.GRU`, as `return_sequences`.

        Returns:
            The layer, built if this cell is; its `cell` is the Keras cell.

        Raises:
            ValueError: If Keras has no such cell: with `reset="none"`, or with
                `update="write"` and another gate than a sigmoid.

        >>> tuple(GRUCell(4).to_keras(return_sequences=True)(keras.ops.ones((2, 7, 3))).shape)
        (2, 7, 4)
        """
        if self.reset == "none":
            raise ValueError(
                'keras.layers.GRU always has a reset gate, a GRUCell with reset="none" has none: '
                "run it in `keras_seq.layers.RNN`."
            )
        sigmoid = self.recurrent_activation is keras.activations.sigmoid
        if self.update == "write" and not sigmoid:
            raise ValueError(
                'With update="write" only a sigmoid gate can be turned into one that keeps, '
                f"received recurrent_activation={self.recurrent_activation.__name__!r}."
            )
        shared = copied(self, "activation", "recurrent_activation")
        layer = keras.layers.GRU(self.units, reset_after=self.reset == "after", **shared, **options)
        if self.built:
            layer.build((None, None, self.kernel.shape[0]))
            arrays = [keras.ops.convert_to_numpy(weight).copy() for weight in self.weights]
            if self.update == "write":
                for array in arrays:
                    array[..., : self.units] *= -1  # 1 - sigmoid(a) = sigmoid(-a)
            layer.set_weights(arrays)
        return layer

    def get_config(self):
        return {
            **super().get_config(),
            "reset": self.reset,
            "update": self.update,
            "activation": keras.activations.serialize(self.activation),
            "recurrent_activation": keras.activations.serialize(self.recurrent_activation),
        }
