"""Position-wise feed-forward network of a Transformer block."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.adaptable_layer import AdaptableLayer
from keras_seq.layers.internal.checks import STEPS, check_positive, check_rates, check_tensor
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.shapes import dense, reshape
from keras_seq.layers.internal.weight_arguments import WeightArguments, new_initializer

# Gated activations and the activations of their gates.
GATES = {"swiglu": "silu", "geglu": "gelu", "reglu": "relu"}


@keras.saving.register_keras_serializable(package="keras_seq")
class FeedForward(AdaptableLayer, WeightArguments):
    """Two dense layers that are applied to each step separately.

        y = dropout(activation(x W_1 + b_1)) W_2 + b_2

    With a gated activation, one more product scales the hidden units:

        y = dropout(gate(x W_g + b_g) * (x W_1 + b_1)) W_2 + b_2

    The gate of "swiglu" is silu, that of "geglu" gelu and that of "reglu" relu. One kernel holds
    W_g and W_1 side by side. For the same F a gated layer has 1.5 times the weights; the paper
    compares layers at two thirds of F and leaves out the biases.

    Shapes: B batch, T steps, D features, F hidden units.

    Args:
        units: Positive integer F.
        activation: Name of a Keras activation, or "swiglu", "geglu" or "reglu".
        dropout, seed: Dropout rate of the hidden units, in [0, 1), and its random seed.
        use_bias: Whether to add the biases. Defaults to True.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer: Of the matrices
            and biases. Default to "glorot_uniform", "zeros" and none.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        training: Whether to apply dropout.

    Returns:
        Tensor `(B, T, D)` in the compute dtype.

    Masks: the mask of `inputs` passes through, and steps do not affect each other.

    Raises:
        ValueError: At construction if `units` is not a positive integer, `dropout` is outside
            [0, 1) or `activation` is unknown. At call if `inputs` has the wrong shape or dtype.

    Example:

    >>> tuple(FeedForward(units=16)(keras.ops.ones((2, 3, 4))).shape)
    (2, 3, 4)

    Reference:
        Vaswani et al., 2017, section 3.3, https://arxiv.org/abs/1706.03762; Shazeer, "GLU Variants
        Improve Transformer", 2020, https://arxiv.org/abs/2002.05202
    """

    parts = ("hidden", "projection")

    def __init__(
        self,
        units: int,
        activation: str | Callable[[Any], Any] = "relu",
        dropout: float = 0.0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_positive(units=units)
        check_rates(dropout=dropout)
        self.units = units
        self.gate = activation if isinstance(activation, str) and activation in GATES else None
        self.activation = _activation(GATES[self.gate] if self.gate else activation)
        self.dropout = dropout
        self.seed = seed
        self.hidden = self._make_dense(
            "hidden",
            2 * units if self.gate else units,
            activation=None if self.gate else self.activation,
        )
        self.projection: Any = None  # has the width of the inputs
        self.dropout_layer = Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def _make_dense(self, name: str, units: int, **options: Any) -> ExactDense:
        arguments = self.weight_arguments()
        for part in ("kernel_initializer", "bias_initializer"):
            arguments[part] = new_initializer(arguments[part])
        return ExactDense(units, **arguments, **options, dtype=self.dtype_policy, name=name)

    def build(self, input_shape: Any) -> None:
        self.projection = self._make_dense("projection", input_shape[-1])
        self.hidden.build(input_shape)
        self.projection.build((*input_shape[:-1], self.units))

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        check_tensor("inputs", inputs, self.projection.units, STEPS)
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))  # for speed, see `dense`
        relu = self.gate is None and self.activation is keras.activations.relu
        if training and self.dropout and relu and self.hidden.quantization_mode is None:
            hidden = dense(rows, self.hidden.kernel, self.hidden.bias)
            hidden = self.dropout_layer.relu_dropout(hidden)
        else:
            hidden = self.hidden(rows)
            if self.gate:
                gate, hidden = ops.split(hidden, 2, axis=-1)
                hidden = self.activation(gate) * hidden
            hidden = self.dropout_layer(hidden, training=training)
        return reshape(self.projection(hidden), backend.shape(inputs))

    def get_config(self) -> dict[str, Any]:
        activation = self.gate or keras.activations.serialize(self.activation)
        return {**super().get_config(), "activation": activation}


def _activation(name: Any) -> Any:
    try:
        return keras.activations.get(name)
    except ValueError as error:
        raise ValueError(
            f'`activation` must be the name of a Keras activation, as "relu" or "gelu", or one '
            f"of {', '.join(GATES)}, received {name!r}."
        ) from error
