"""What the recurrent cells share: their weights, one step, and the form for a loop."""

from typing import Any

import keras
from keras import ops, tree

from keras_seq.layers.internal.loop_cell import SplitKernel, add
from keras_seq.layers.internal.shapes import add_bias
from keras_seq.layers.internal.step_loop import LoopMatmul, read_once

# Shape letters: B batch, T steps, D input features, U units, G gate features.


def check_units(units, name="units"):
    """Raises ValueError unless `units` is a positive integer."""
    if not isinstance(units, int) or isinstance(units, bool) or units < 1:
        raise ValueError(f"`{name}` must be a positive integer, received {units!r}.")


def check_rate(rate, name):
    """Raises ValueError unless `rate` is a number in [0, 1)."""
    if not isinstance(rate, (int, float)) or not 0 <= rate < 1:
        raise ValueError(f"`{name}` must be in [0, 1), received {rate!r}.")


def activation_of(function):
    """A Keras activation that keeps the dtype of its inputs, which on JAX float64 does not."""
    return lambda inputs: ops.cast(function(inputs), inputs.dtype)


def single_step_noise(cell):
    """The error of a cell that would have to draw noise by itself in a step."""
    return ValueError(
        f"The cell {cell.name!r} cannot drop anything in a single step: its noise is drawn before "
        "the loop, by `keras_seq.layers.RNN`. Use that in place of `keras.layers.RNN`, with the "
        "dtype policy of the cell, or call the cell with `training=False`."
    )


class RecurrentCell(keras.layers.Layer):
    """Abstract cell that reads its inputs through one product with a kernel.

        output, states = advance(read(x W), states)

    A subclass defines `gates`, how many blocks of U features the product has,
    `reader`, which gives read, `lay_out` and `advance`; this class runs them
    for a single step and inside a loop, where x W of all steps is one product
    and what `lay_out` gives is made once.

    Args:
        units: Positive integer U.
        use_bias: Whether there is a bias. Defaults to True.
        kernel_initializer: Of the weights of the inputs.
        recurrent_initializer: Of the weights of the state.
        bias_initializer: Of the bias.
        dropout: Float in [0, 1), the share of the inputs dropped in training,
            the same ones at all steps of a sequence.
        recurrent_dropout: Float in [0, 1), likewise of the state that enters
            the product.
        seed: Optional integer, makes the dropout reproducible.
    """

    gates = 1

    def __init__(
        self,
        units,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        bias_initializer="zeros",
        dropout=0.0,
        recurrent_dropout=0.0,
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_units(units)
        check_rate(dropout, "dropout")
        check_rate(recurrent_dropout, "recurrent_dropout")
        self.units = units
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.dropout = dropout
        self.recurrent_dropout = recurrent_dropout
        self.seed = seed
        if dropout or recurrent_dropout:
            self.seed_generator = keras.random.SeedGenerator(seed)

    @property
    def output_size(self):
        """Integer, the width of the output and of the first state."""
        return self.units

    @property
    def state_size(self):
        """Integer, or a list of them where there is more than one state."""
        return self.output_size

    @property
    def bias_shape(self):
        """Shape of the bias."""
        return (self.gates * self.units,)

    @property
    def recurrent_start(self):
        """Initializer of the weights of the state."""
        return self.recurrent_initializer

    @property
    def bias_start(self):
        """Initializer of the bias."""
        return self.bias_initializer

    def get_initial_state(self, batch_size=None):
        """States of zeros."""
        return [
            ops.zeros((batch_size, size), dtype=self.compute_dtype)
            for size in tree.flatten(self.state_size)
        ]

    def build(self, input_shape):
        if len(input_shape) != 2 or input_shape[-1] is None:
            raise ValueError(
                "A cell reads one step, inputs of shape (batch, features) with known features, "
                f"received {tuple(input_shape)}. For whole sequences use `keras_seq.layers.RNN`."
            )
        width = self.gates * self.units
        self.kernel = self.add_weight(
            name="kernel", shape=(input_shape[-1], width), initializer=self.kernel_initializer
        )
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(self.output_size, width),
            initializer=self.recurrent_start,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                name="bias", shape=self.bias_shape, initializer=self.bias_start
            )

    def reader(self):
        """The function of x W that meets the state: `(..., G)` -> `(..., G)`."""
        if self.bias is None:
            return lambda product: product
        bias = read_once(self.bias)
        return lambda product: add_bias(product, bias)

    def lay_out(self, matrix):
        """Dict of what every step uses besides its inputs and states, by argument of `advance`.

        Args:
            matrix: Makes of a weight the function that multiplies by it, and
                with `drops=True`, the default, drops what
                `recurrent_dropout` drops.
        """
        return {"recurrent": matrix(self.recurrent_kernel)}

    def advance(self, *arguments, **laid_out):
        """One step: inputs `(B, G)` from `reader`, states and `lay_out` -> output and states."""
        raise NotImplementedError

    def call(self, inputs, states, training=None):
        if training and (self.dropout or self.recurrent_dropout):
            raise single_step_noise(self)
        if inputs.shape[-1] != self.kernel.shape[0]:
            raise ValueError(
                f"The cell {self.name!r} was built for {self.kernel.shape[0]} input features, "
                f"received inputs of shape {tuple(inputs.shape)}."
            )
        states = list(states) if tree.is_nested(states) else [states]
        product = self.reader()(ops.matmul(inputs, self.kernel))
        laid_out = self.lay_out(
            lambda weight, drops=True: lambda hidden: ops.matmul(hidden, weight)
        )
        return self.advance(product, states, **laid_out)

    def in_loop(self, features, summary_features=0, noise_shape=None):
        """The form for a loop, see `keras_seq.layers.internal.loop_cell`."""
        return _CellInLoop(self, features, summary_features, noise_shape)

    def draw_mask(self, rate, batch, features):
        """0 and 1 / (1 - rate), `(B, D)`; None where nothing is dropped."""
        if not rate:
            return None
        ones = ops.ones((batch, features), dtype=self.compute_dtype)
        return keras.random.dropout(ones, rate, seed=self.seed_generator)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "recurrent_initializer": keras.initializers.serialize(self.recurrent_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
            "dropout": self.dropout,
            "recurrent_dropout": self.recurrent_dropout,
            "seed": self.seed,
        }


class _CellInLoop:
    """A `RecurrentCell` for every step of a loop."""

    def __init__(self, cell, features, summary_features, noise_shape):
        self.cell = cell
        self.kernel = SplitKernel(cell.kernel, features, summary_features)
        self.input_masks: list[Any] = [None, None, None]
        recurrent_mask = None
        if noise_shape is not None:
            batch = noise_shape[0]
            mask = cell.draw_mask(cell.dropout, batch, cell.kernel.shape[0])
            if mask is not None:
                self.input_masks = ops.split(mask, [features, features + summary_features], axis=-1)
            recurrent_mask = cell.draw_mask(cell.recurrent_dropout, batch, cell.output_size)

        def matrix(weight, drops=True):
            product = LoopMatmul(weight)
            if recurrent_mask is None or not drops:
                return product
            return lambda hidden: product(hidden * recurrent_mask)

        if self.kernel.has_fed:
            self.fed_matrix = LoopMatmul(self.kernel.fed)
        self.read = cell.reader()
        self.laid_out = cell.lay_out(matrix)

    def project(self, inputs, summary=None):
        known_mask, summary_mask, _ = self.input_masks
        if known_mask is not None:
            inputs = None if inputs is None else inputs * ops.expand_dims(known_mask, 1)
            summary = None if summary is None else ops.cast(summary, known_mask.dtype)
            summary = None if summary is None else summary * summary_mask
        product = self.kernel.product(inputs, summary)
        return product if self.kernel.has_fed else self.read(product)

    def step(self, projected, fed, states):
        if fed is not None:
            fed_mask = self.input_masks[2]
            fed = fed if fed_mask is None else fed * fed_mask
            projected = self.read(add(projected, self.fed_matrix(fed)))
        return self.cell.advance(projected, list(states), **self.laid_out)
