"""Cell found by neural architecture search."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_seq.layers.cells.recurrent_cell import RecurrentCell, same_dtype
from keras_seq.layers.internal.checks import check_positive
from keras_seq.layers.internal.step_loop import read_once
from keras_seq.layers.internal.weight_arguments import Initializer

tanh = same_dtype(keras.activations.tanh)
sigmoid = same_dtype(keras.activations.sigmoid)
relu = same_dtype(keras.activations.relu)


@keras.saving.register_keras_serializable(package="keras_seq")
class NASCell(RecurrentCell):
    """Recurrent cell found by neural architecture search.

        a_k = x W_k,  b_k = h U_k + d_k,  k = 0 ... 7    (d = 0 without a bias)
        m_0 = tanh(sigmoid(a_0 + b_0) * relu(a_1 + b_1))
        m_1 = tanh(sigmoid(a_2 + b_2) + relu(a_3 * b_3))
        m_2 = tanh(tanh(a_4 + b_4) * sigmoid(a_5 + b_5))
        m_3 = sigmoid(tanh(a_6 + b_6) + sigmoid(a_7 + b_7))
        c'  = tanh(m_0 + c) * m_1
        h'  = tanh(c' * tanh(m_2 + m_3)), times a matrix with `projection`

    The cell computes the same as `tfa.rnn.NASCell`, but in another order of states and weights.
    The states are h, c and the weights kernel, recurrent_kernel, bias, projection. In
    `tfa.rnn.NASCell` the states are c, h and the recurrent kernel comes first.

    Shapes: B batch, D input features, U units, P output features.

    Args:
        units: Positive integer U.
        projection: Width P of a projected output. Defaults to no projection, P = U.
        use_bias: Whether to add the bias d. Defaults to False.
        recurrent_initializer, projection_initializer: Initializers of U and of the projection.
        kwargs: `kernel_initializer`, `bias_initializer`, the regularizers, `dropout`,
            `recurrent_dropout` and `seed`, as in `GRUCell`. `kernel_regularizer` applies to the
            projection too.

    Call arguments and outputs are those of `GRUCell`, with h `(B, P)` and c `(B, U)` as states.

    Raises:
        ValueError: As for `GRUCell`, and if `projection` is not a positive integer.

    Example:

    >>> outputs = RNN(NASCell(4, projection=2))(keras.ops.ones((2, 7, 3)))
    >>> tuple(outputs.shape)
    (2, 2)

    Reference:
        Zoph and Le, "Neural Architecture Search with Reinforcement Learning", ICLR 2017,
        appendix A, https://arxiv.org/abs/1611.01578
    """

    num_gates = 8

    def __init__(
        self,
        units: int,
        projection: int | None = None,
        use_bias: bool = False,
        recurrent_initializer: Initializer = "glorot_uniform",
        projection_initializer: Initializer = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        check_positive(optional=True, projection=projection)
        super().__init__(
            units, use_bias=use_bias, recurrent_initializer=recurrent_initializer, **kwargs
        )
        self.projection = projection
        self.projection_initializer = keras.initializers.get(projection_initializer)

    @property
    def output_size(self) -> int:
        return self.projection or self.units

    @property
    def state_size(self) -> list[int]:
        return [self.output_size, self.units]

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        if self.projection is not None:
            self.projection_kernel = self.add_weight(
                name="projection",
                shape=(self.units, self.projection),
                initializer=self.projection_initializer,
                regularizer=self.kernel_regularizer,
            )

    def input_transform(self) -> Callable[[Any], Any]:
        # `step` adds the bias to h U alone, because m_1 multiplies a_3 by b_3.
        return lambda product: product

    def loop_constants(self, matmul: Any) -> dict[str, Any]:
        constants = super().loop_constants(matmul)
        if self.bias is not None:
            constants["bias"] = read_once(self.bias)
        if self.projection is not None:
            constants["project"] = matmul(self.projection_kernel, drop=False)
        return constants

    def step(
        self, inputs: Any, states: Any, recurrent: Any, bias: Any = None, project: Any = None
    ) -> Any:
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
