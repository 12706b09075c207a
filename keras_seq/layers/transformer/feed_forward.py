"""Position-wise feed-forward network of a Transformer block."""

import keras
from keras import ops

from keras_seq.layers.internal.checks import STEPS, check_tensor
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.shapes import dense, reshape

# Gated activations, and what is done to the gate.
GATES = {"swiglu": "silu", "geglu": "gelu", "reglu": "relu"}


@keras.saving.register_keras_serializable(package="keras_seq")
class FeedForward(keras.layers.Layer):
    """Two dense layers applied to every step alike.

        y = dropout(activation(x W_1 + b_1)) W_2 + b_2

    or, gated, with one more product of which the first is a measure:

        y = dropout(gate(x W_g + b_g) * (x W_1 + b_1)) W_2 + b_2

    where the gate of "swiglu" is silu, that of "geglu" gelu and that of
    "reglu" relu. W_g and W_1 are one matrix side by side. At equal F a gated
    layer has half as many weights again; the paper compares at two thirds of F,
    and leaves out the biases.

    Shapes: B batch, T steps, D features, F hidden units.

    Args:
        units: Positive integer F.
        activation: Name of a Keras activation, or "swiglu", "geglu" or "reglu".
        dropout: Float in [0, 1), share of hidden units dropped in training.
        seed: Optional integer, makes the dropout reproducible.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        training: Whether to apply dropout.

    Returns:
        Tensor `(B, T, D)` in the compute dtype.

    Masks: the mask of `inputs` passes through; steps do not see one another.

    Raises:
        ValueError: At construction if `units` is not a positive integer,
            `dropout` is outside [0, 1) or `activation` is unknown; at a call of
            inputs of another width or without steps.

    Example:

    >>> tuple(FeedForward(units=16)(keras.ops.ones((2, 3, 4))).shape)
    (2, 3, 4)

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 3.3,
        https://arxiv.org/abs/1706.03762; Shazeer, "GLU Variants Improve
        Transformer", 2020, https://arxiv.org/abs/2002.05202
    """

    def __init__(self, units, activation="relu", dropout=0.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(units, int) or units < 1:
            raise ValueError(f"`units` must be a positive integer, received {units!r}.")
        if not 0 <= dropout < 1:
            raise ValueError(f"`dropout` must be in [0, 1), received {dropout!r}.")
        self.units = units
        self.gate = activation if isinstance(activation, str) and activation in GATES else None
        self.activation = _activation(GATES[activation] if self.gate else activation)
        self.dropout = dropout
        self.seed = seed
        self.supports_masking = True
        policy = self.dtype_policy
        self.hidden = ExactDense(
            2 * units if self.gate else units,
            activation=None if self.gate else self.activation,
            dtype=policy,
            name="hidden",
        )
        self.dropout_layer = Dropout(dropout, seed=seed, dtype=policy)

    def build(self, input_shape):
        self.projection = ExactDense(input_shape[-1], dtype=self.dtype_policy, name="projection")
        self.hidden.build(input_shape)
        self.projection.build((*input_shape[:-1], self.units))

    def call(self, inputs, training=None):
        check_tensor("inputs", inputs, self.projection.units, STEPS)
        # As matrices: see `dense`.
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
        if (
            training
            and self.dropout
            and not self.gate
            and self.activation is keras.activations.relu
        ):
            hidden = dense(rows, self.hidden.kernel, self.hidden.bias)
            hidden = self.dropout_layer.relu_dropout(hidden)
        else:
            hidden = self.hidden(rows)
            if self.gate:
                gate, hidden = ops.split(hidden, 2, axis=-1)
                hidden = self.activation(gate) * hidden
            hidden = self.dropout_layer(hidden, training=training)
        return reshape(self.projection(hidden), ops.shape(inputs))

    def compute_mask(self, inputs, mask=None):
        return mask

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "activation": self.gate or keras.activations.serialize(self.activation),
            "dropout": self.dropout,
            "seed": self.seed,
        }


def _activation(name):
    try:
        return keras.activations.get(name)
    except ValueError as error:
        raise ValueError(
            f'`activation` must be the name of a Keras activation, as "relu" or "gelu", or one '
            f"of {', '.join(GATES)}, received {name!r}."
        ) from error
