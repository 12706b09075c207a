"""Convolutional encoder with gated linear units."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.adaptable_layer import AdaptableLayer
from keras_seq.layers.internal.checks import STEPS, check_positive, check_rates, known_features
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.scaled_dot_product import zero_padding
from keras_seq.layers.internal.seeds import split_seed


@keras.saving.register_keras_serializable(package="keras_seq")
class ConvolutionalEncoder(AdaptableLayer):
    """Encoder of residual convolutions with gated linear units.

        h_0     = x W + b
        [a; g]  = convolution of dropout(h_{l-1}), 2 U features
        h_l     = sqrt(1/2) (h_{l-1} + a * sigmoid(g))

    It computes all steps in parallel, unlike a recurrent encoder, and step s sees only the
    `num_layers * (kernel_size - 1)` steps around it, unlike a Transformer. Add positions to its
    inputs, by `SinusoidalPosition` or `LearnedPosition`, because it knows no order beyond this
    window. Its outputs can serve any decoder as memory.

    Shapes: B batch, S source steps, D features, U units.

    Args:
        units: Positive integer U.
        num_layers: Positive integer, the number of convolutions. Defaults to 4.
        kernel_size: Positive integer, the steps that one convolution sees; odd unless `causal`.
        dropout, seed: Dropout rate of the inputs of each convolution, in [0, 1), and its random
            seed.
        causal: Whether a step sees only itself and earlier steps. Defaults to False.

    Call arguments:
        inputs: Float tensor `(B, S, D)`, word vectors with positions.
        mask: Optional bool tensor `(B, S)`, True at real steps; by default the Keras mask.
        training: Whether to apply dropout.

    Returns:
        Tensor `(B, S, U)` in the compute dtype, 0 at masked steps.

    Masks: the mask of `inputs` passes through. Padding is set to 0 before every convolution, so
    neither its amount nor its content, even NaN, affects outputs or gradients.

    Raises:
        ValueError: If a size is not a positive integer, `kernel_size` is even without `causal`,
            `dropout` is outside [0, 1), or the inputs are not of shape `(B, S, D)` with known D.

    Example:

    >>> words = TokenEmbedding(vocabulary_size=10, units=4)(keras.ops.array([[5, 6, 0]]))
    >>> encoder = ConvolutionalEncoder(units=8, num_layers=2)
    >>> tuple(encoder(SinusoidalPosition()(words)).shape)
    (1, 3, 8)

    Reference:
        Gehring et al., "Convolutional Sequence to Sequence Learning", ICML 2017, sections 3.1
        and 3.2, https://arxiv.org/abs/1705.03122
    """

    parts = ("projection",)

    def __init__(
        self,
        units: int,
        num_layers: int = 4,
        kernel_size: int = 3,
        dropout: float = 0.0,
        seed: int | None = None,
        causal: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_positive(units=units, num_layers=num_layers, kernel_size=kernel_size)
        if not causal and kernel_size % 2 == 0:
            raise ValueError(
                "`kernel_size` must be odd without `causal`, so that a step sees as far ahead as "
                f"behind, received {kernel_size}."
            )
        check_rates(dropout=dropout)
        self.units = units
        self.num_layers = num_layers
        self.kernel_size = kernel_size
        self.dropout = dropout
        self.causal = causal
        self.seed = seed
        policy = self.dtype_policy
        self.projection = ExactDense(units, dtype=policy, name="projection")
        self.convolutions = [
            keras.layers.Conv1D(
                2 * units,
                kernel_size,
                padding="causal" if causal else "same",
                # Gates halve the standard deviation and dropout raises it. This initializer keeps
                # the standard deviation constant (section 3.5).
                kernel_initializer=keras.initializers.VarianceScaling(
                    4 * (1 - dropout), "fan_in", "untruncated_normal"
                ),
                dtype=policy,
                name=f"convolution_{layer}",
            )
            for layer in range(num_layers)
        ]
        self.dropout_layers = [
            keras.layers.Dropout(dropout, seed=inner_seed, dtype=policy)
            for inner_seed in split_seed(seed, num_layers)
        ]

    def build(self, input_shape: Any) -> None:
        known_features("inputs", input_shape, STEPS)
        self.projection.build(input_shape)
        for convolution in self.convolutions:
            convolution.build((*input_shape[:-1], self.units))

    def call(self, inputs: Any, mask: Any = None, training: bool | None = None) -> Any:
        hidden = zero_padding(self.projection(zero_padding(inputs, mask)), mask)
        for convolution, dropout in zip(self.convolutions, self.dropout_layers, strict=True):
            both = convolution(dropout(hidden, training=training))  # (B, S, 2 U)
            outputs, gates = ops.split(both, 2, axis=-1)
            hidden = (hidden + outputs * ops.sigmoid(gates)) * 0.5**0.5
            hidden = zero_padding(hidden, mask)
        return hidden
