"""Base classes of the recurrent cells, and their loop adapter."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops, tree

from keras_seq.layers.internal.checks import check_positive, check_rates
from keras_seq.layers.internal.loop_cell import SplitKernel, add
from keras_seq.layers.internal.shapes import add_bias
from keras_seq.layers.internal.step_loop import LoopMatmul, read_once
from keras_seq.layers.internal.weight_arguments import Initializer, Regularizer, WeightArguments

# Shape letters: B batch, T steps, D input features, U units, G gate features.

# The argument type of `keras.activations.get`.
Activation = str | Callable[..., Any] | None


def same_dtype(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Makes an activation keep its input dtype. On JAX, Keras returns float32 for float64."""
    return lambda inputs: ops.cast(function(inputs), inputs.dtype)


def draw_mask(cell: Any, rate: float, shape: Any) -> Any:
    """Returns a tensor of 0 and 1 / (1 - rate) for a dropout, or None if the rate is 0."""
    if not rate:
        return None
    ones = ops.ones(shape, dtype=cell.compute_dtype)
    return keras.random.dropout(ones, rate, seed=cell.seed_generator)


def single_step_noise(cell: keras.layers.Layer) -> ValueError:
    """Returns the error for a cell that needs random noise but does not run in `RNN`."""
    return ValueError(
        f"The cell {cell.name!r} has no dropout or zoneout in a single step, because its noise is "
        "drawn before the loop, by `keras_seq.layers.RNN`. Run it in that layer instead of "
        "`keras.layers.RNN`, with the dtype policy of the cell, or call it with `training=False`."
    )


class RecurrentCell(WeightArguments):
    """Abstract cell that multiplies its inputs by one kernel.

        output, states = step(transform(x W), states)

    A subclass defines `num_gates` and `step`, and may override `input_transform` and
    `loop_constants`. This class runs them in a single step and in a loop. A loop computes x W of
    all steps as one product, and the transform and the constants once. One dropout mask serves all
    steps of a sequence. Recurrent dropout applies to the state that enters the product.
    """

    # x W has `num_gates * U` features.
    num_gates = 1

    def __init__(
        self,
        units: int,
        recurrent_initializer: Initializer = "orthogonal",
        recurrent_regularizer: Regularizer = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_positive(units=units)
        check_rates(dropout=dropout, recurrent_dropout=recurrent_dropout)
        self.units = units
        # As in Keras, a cell draws the seeds of its initial weights at construction.
        self.kernel_initializer = keras.initializers.get(self.kernel_initializer)
        self.recurrent_initializer = keras.initializers.get(recurrent_initializer)
        self.bias_initializer = keras.initializers.get(self.bias_initializer)
        self.recurrent_regularizer = keras.regularizers.get(recurrent_regularizer)
        self.dropout = dropout
        self.recurrent_dropout = recurrent_dropout
        self.seed = seed
        if dropout or recurrent_dropout:
            self.seed_generator = keras.random.SeedGenerator(seed)

    @property
    def output_size(self) -> int:
        """Width of the output and of the first state."""
        return self.units

    @property
    def state_size(self) -> int | list[int]:
        """Width of the state, or a list of the widths of several states."""
        return self.output_size

    @property
    def bias_shape(self) -> tuple[int, ...]:
        return (self.num_gates * self.units,)

    def initial_recurrent_kernel(self, shape: Any, dtype: Any = None) -> Any:
        return self.recurrent_initializer(shape, dtype=dtype)

    def initial_bias(self, shape: Any, dtype: Any = None) -> Any:
        return self.bias_initializer(shape, dtype=dtype)

    def get_initial_state(self, batch_size: Any = None) -> list[Any]:
        """Returns a list of zeros `(B, U)`, one tensor per state."""
        sizes = tree.flatten(self.state_size)
        return [ops.zeros((batch_size, size), dtype=self.compute_dtype) for size in sizes]

    def build(self, input_shape: Any) -> None:
        if len(input_shape) != 2 or input_shape[-1] is None:
            raise ValueError(
                "A cell reads one step, inputs of shape (batch, features) with known features, "
                f"received {tuple(input_shape)}. For whole sequences use `keras_seq.layers.RNN`."
            )
        width = self.num_gates * self.units
        self._add_kernel("kernel", (input_shape[-1], width), self.kernel_initializer)
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(self.output_size, width),
            initializer=self.initial_recurrent_kernel,
            regularizer=self.recurrent_regularizer,
        )
        self._add_bias("bias", self.bias_shape, self.initial_bias)

    def input_transform(self) -> Callable[[Any], Any]:
        """Returns the function that adds the bias to x W `(..., G)` before `step`."""
        if self.bias is None:
            return lambda product: product
        bias = read_once(self.bias)
        return lambda product: add_bias(product, bias)

    def loop_constants(self, matmul: Callable[..., Any]) -> dict[str, Any]:
        """Returns the keyword arguments of `step` that are the same at every step.

        `matmul` returns, for a weight, the function that multiplies a state by it. The state is
        first subject to `recurrent_dropout`, unless `matmul` is called with `drop=False`.
        """
        return {"recurrent": matmul(self.recurrent_kernel)}

    def step(self, inputs: Any, states: Any, *args: Any, **constants: Any) -> Any:
        """Returns the output and states of one step. `inputs` are the transformed x W `(B, G)`."""
        raise NotImplementedError

    def call(self, inputs: Any, states: Any, training: bool | None = None) -> tuple[Any, list[Any]]:
        if training and (self.dropout or self.recurrent_dropout):
            raise single_step_noise(self)
        if inputs.shape[-1] != self.kernel.shape[0]:
            raise ValueError(
                f"The cell {self.name!r} was built for {self.kernel.shape[0]} input features, "
                f"received inputs of shape {tuple(inputs.shape)}."
            )
        states = list(states) if tree.is_nested(states) else [states]
        product = self.input_transform()(ops.matmul(inputs, self.kernel))
        constants = self.loop_constants(
            lambda weight, drop=True: lambda hidden: ops.matmul(hidden, weight)
        )
        return self.step(product, states, **constants)

    def in_loop(self, features: int, summary_features: int = 0, noise_shape: Any = None) -> Any:
        """Returns the loop adapter; see `keras_seq.layers.internal.loop_cell`."""
        return RecurrentCellInLoop(self, features, summary_features, noise_shape)

    def with_weights_of(self, keras_cell: keras.layers.Layer) -> Any:
        """Copies the weights of a Keras cell, if that cell is built. Returns this cell."""
        if keras_cell.built:
            self.build((None, keras_cell.kernel.shape[0]))
            self.built = True
            self.set_weights(keras_cell.get_weights())
        return self


class LSTMBase(RecurrentCell):
    """Abstract cell with gates in the order i, f, c, o and the states h and c.

    `activation` applies to the candidate and the cell state, `recurrent_activation` to the gates.
    """

    num_gates = 4

    def __init__(
        self,
        units: int,
        activation: Activation = "tanh",
        recurrent_activation: Activation = "sigmoid",
        unit_forget_bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, **kwargs)
        self.activation = keras.activations.get(activation)
        self.recurrent_activation = keras.activations.get(recurrent_activation)
        self.unit_forget_bias = unit_forget_bias

    @property
    def state_size(self) -> list[int]:
        return [self.units, self.units]

    def initial_bias(self, shape: Any, dtype: Any = None) -> Any:
        bias = super().initial_bias(shape, dtype)
        if not self.unit_forget_bias:
            return bias
        ones = ops.ones((self.units,), dtype=dtype)
        return ops.concatenate([bias[: self.units], ones, bias[2 * self.units :]])


class RecurrentCellInLoop:
    """Loop adapter of a `RecurrentCell`."""

    def __init__(self, cell: Any, features: int, summary_features: int, noise_shape: Any) -> None:
        self.cell = cell
        self.kernel = SplitKernel(cell.kernel, features, summary_features)
        self.input_masks: list[Any] = [None, None, None]
        recurrent_mask = None
        if noise_shape is not None:
            batch = noise_shape[0]
            mask = draw_mask(cell, cell.dropout, (batch, cell.kernel.shape[0]))
            if mask is not None:
                self.input_masks = ops.split(mask, [features, features + summary_features], axis=-1)
            shape = (batch, cell.output_size)
            recurrent_mask = draw_mask(cell, cell.recurrent_dropout, shape)

        def matmul(weight: Any, drop: bool = True) -> Any:
            product = LoopMatmul(weight)
            if recurrent_mask is None or not drop:
                return product
            return lambda hidden: product(hidden * recurrent_mask)

        if self.kernel.has_feedback:
            self.feedback_matmul = LoopMatmul(self.kernel.feedback)
        self.transform = cell.input_transform()
        self.constants = cell.loop_constants(matmul)

    def project(self, inputs: Any, summary: Any = None) -> Any:
        known_mask, summary_mask, _ = self.input_masks
        if known_mask is not None:
            inputs = None if inputs is None else inputs * ops.expand_dims(known_mask, 1)
            summary = None if summary is None else ops.cast(summary, known_mask.dtype)
            summary = None if summary is None else summary * summary_mask
        product = self.kernel.product(inputs, summary)
        return product if self.kernel.has_feedback else self.transform(product)

    def step(self, projected: Any, feedback: Any, states: Any) -> Any:
        if feedback is not None:
            feedback_mask = self.input_masks[2]
            feedback = feedback if feedback_mask is None else feedback * feedback_mask
            projected = self.transform(add(projected, self.feedback_matmul(feedback)))
        return self.cell.step(projected, list(states), **self.constants)
