"""Gated recurrent unit."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_seq.layers.cells.conversion import keras_cell_of, shared_options, weight_arrays
from keras_seq.layers.cells.recurrent_cell import Activation, RecurrentCell, same_dtype
from keras_seq.layers.internal.checks import check_choice
from keras_seq.layers.internal.shapes import add_bias
from keras_seq.layers.internal.step_loop import read_once


@keras.saving.register_keras_serializable(package="keras_seq")
class GRUCell(RecurrentCell):
    """Gated recurrent unit with a choice of reset and update gate.

        z  = sigmoid(x W_z + h U_z + b_z)
        r  = sigmoid(x W_r + h U_r + b_r)
        h~ = tanh(x W_h + b_h + r * (h U_h + b'_h))    reset="after", the form of cuDNN
        h~ = tanh(x W_h + b_h + (r * h) U_h)           reset="before" (Cho et al., 2014)
        h~ = tanh(x W_h + b_h + h U_h)                 reset="none", without r and its weights
        h' = z * h + (1 - z) * h~                      update="keep"
        h' = z * h~ + (1 - z) * h                      update="write"

    Run the cell over sequences with `keras_seq.layers.RNN`. `keras.layers.GRUCell` offers the
    first two resets with `update="keep"`. The weights have the layout of the Keras cell: gates in
    the order z, r, h.

    Shapes: B batch, D input features, U units.

    Args:
        units: Positive integer U.
        reset: "after", "before" or "none". Defaults to "after".
        update: "keep" or "write". Defaults to "keep".
        activation: Activation of the candidate h~. Defaults to "tanh".
        recurrent_activation: Activation of the gates. Defaults to "sigmoid".
        use_bias: Whether to add biases. Defaults to True.
        kernel_initializer, recurrent_initializer, bias_initializer: Initializers of W, U and the
            biases. Default to "glorot_uniform", "orthogonal" and "zeros".
        kernel_regularizer, recurrent_regularizer, bias_regularizer: Regularizers of W, U and the
            biases. Default to none.
        dropout: Float in [0, 1), fraction of the inputs dropped in training. One mask serves all
            steps of a sequence (Gal and Ghahramani, 2016). Defaults to 0.
        recurrent_dropout: Float in [0, 1), the same for h where it enters a product. One mask
            serves all gates. Defaults to 0.
        seed: Optional integer that makes the dropout reproducible.

    Call arguments:
        inputs: Float tensor `(B, D)`, one step. A step has no mask; `RNN` skips masked steps.
        states: List of h `(B, U)`.
        training: Must be false if the cell has dropout; `RNN` applies it.

    Returns:
        output: h', tensor `(B, U)` in the compute dtype.
        states: List of h'.

    Raises:
        ValueError: If `units` is not a positive integer, `reset` or `update` has another value, or
            a dropout is outside [0, 1); at build or call if the inputs have the wrong rank or
            width; if the cell is called in training with dropout.

    Example:

    >>> cell = GRUCell(4, reset="before", update="write")
    >>> output, states = cell(keras.ops.ones((2, 3)), [keras.ops.zeros((2, 4))])
    >>> tuple(output.shape)
    (2, 4)

    Reference:
        Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder for Statistical
        Machine Translation", EMNLP 2014, section 2.3, https://arxiv.org/abs/1406.1078; Gal and
        Ghahramani, "A Theoretically Grounded Application of Dropout in Recurrent Neural
        Networks", NeurIPS 2016, https://arxiv.org/abs/1512.05287
    """

    def __init__(
        self,
        units: int,
        reset: str = "after",
        update: str = "keep",
        activation: Activation = "tanh",
        recurrent_activation: Activation = "sigmoid",
        **kwargs: Any,
    ) -> None:
        check_choice("reset", reset, ("after", "before", "none"))
        check_choice("update", update, ("keep", "write"))
        super().__init__(units, **kwargs)
        self.reset = reset
        self.num_gates = 2 if reset == "none" else 3
        self.update = update
        self.activation = keras.activations.get(activation)
        self.recurrent_activation = keras.activations.get(recurrent_activation)

    @property
    def bias_shape(self) -> tuple[int, ...]:
        width = self.num_gates * self.units
        return (2, width) if self.reset == "after" else (width,)

    def input_transform(self) -> Callable[[Any], Any]:
        if self.bias is None or self.reset != "after":
            return super().input_transform()
        bias, gates = read_once(self.bias), 2 * self.units
        # Adds both biases of the gates. `step` adds the bias of h U_h, before the reset gate.
        bias = ops.concatenate([bias[0, :gates] + bias[1, :gates], bias[0, gates:]])
        return lambda product: add_bias(product, bias)

    def loop_constants(self, matmul: Any) -> dict[str, Any]:
        if self.reset == "before":
            kernel, gates = read_once(self.recurrent_kernel), 2 * self.units
            return {
                "recurrent": matmul(kernel[:, :gates]),
                "recurrent_candidate": matmul(kernel[:, gates:]),
            }
        constants = super().loop_constants(matmul)
        if self.reset == "after" and self.bias is not None:
            constants["candidate_bias"] = read_once(self.bias)[1, 2 * self.units :]
        return constants

    def step(
        self,
        inputs: Any,
        states: Any,
        recurrent: Any,
        recurrent_candidate: Any = None,
        candidate_bias: Any = None,
    ) -> Any:
        (hidden,) = states
        tanh, sigmoid = same_dtype(self.activation), same_dtype(self.recurrent_activation)
        gates = (self.num_gates - 1) * self.units
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
    def from_keras(cls, source: keras.layers.Layer) -> "GRUCell":
        """Returns a cell with the options and weights of a `keras.layers.GRU` or `GRUCell`.

        The new cell is built if `source` is. Raises ValueError if `source` is another layer, or has
        constraints.

        >>> cell = GRUCell.from_keras(keras.layers.GRU(4, reset_after=False))
        >>> cell.reset
        'before'
        """
        keras_cell = keras_cell_of(source, keras.layers.GRU, keras.layers.GRUCell)
        reset = "after" if keras_cell.reset_after else "before"
        cell = cls(keras_cell.units, reset=reset, **shared_options(keras_cell))
        return cell.with_weights_of(keras_cell)

    def to_keras(self, **options: Any) -> keras.layers.GRU:
        """Returns a `keras.layers.GRU` with the same options and weights, to use cuDNN on a GPU.

        `options` are further arguments of `keras.layers.GRU`, such as `return_sequences`. Raises
        ValueError if Keras has no such cell: with `reset="none"`, or with `update="write"` and
        another gate than a sigmoid.

        >>> tuple(GRUCell(4).to_keras(return_sequences=True)(keras.ops.ones((2, 7, 3))).shape)
        (2, 7, 4)
        """
        if self.reset == "none":
            raise ValueError(
                'keras.layers.GRU always has a reset gate, a GRUCell with reset="none" has none: '
                "run it in `keras_seq.layers.RNN`."
            )
        negate = self.update == "write"
        if negate and self.recurrent_activation is not keras.activations.sigmoid:
            raise ValueError(
                'With update="write" only a sigmoid gate can be turned into one that keeps, '
                f"received recurrent_activation={self.recurrent_activation.__name__!r}."
            )
        options = {"reset_after": self.reset == "after", **shared_options(self), **options}
        layer = keras.layers.GRU(self.units, **options)
        if self.built:
            layer.build((None, None, self.kernel.shape[0]))
            arrays = weight_arrays(self)
            if negate:
                for array in arrays:
                    array[..., : self.units] *= -1  # 1 - sigmoid(a) = sigmoid(-a)
            layer.set_weights(arrays)
        return layer
