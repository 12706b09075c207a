"""Convolution over time with a stride, and its mask."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.checks import check_positive
from keras_seq.layers.internal.configured_layer import ConfiguredLayer
from keras_seq.layers.internal.scaled_dot_product import zero_padding


@keras.saving.register_keras_serializable(package="keras_seq")
class StridedConvolution(ConfiguredLayer):
    """Convolution over time that merges several frames into one.

        y_t = activation(b + sum over i of W_i x_{stride t + i - (kernel_size - 1) // 2})

    Frames before the first and after the last are 0. Use it before the recurrent layers of a
    speech model: speech has many more frames than labels, and recurrent layers spend time on each.

    Unlike `keras.layers.Conv1D` with padding "same", its windows do not move when the number of
    frames changes from odd to even, so padding does not affect real frames, and its mask has the
    new length.

    Shapes: B batch, T frames, D features, U units, F output frames.

    Args:
        units: Positive integer U.
        stride: Positive integer, the number of frames that become one. Defaults to 2.
        kernel_size: Positive integer, the number of frames in a window. Defaults to 3.
        activation: Activation of the outputs. Defaults to "relu".

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        mask: Optional bool tensor `(B, T)`, True at real frames; by default the Keras mask.

    Returns:
        Tensor `(B, F, U)` in the compute dtype, F = T / stride rounded up, 0 at masked frames.

    Masks: output frame t is real if input frame `stride t` is, so n real frames become n / stride,
    rounded up. Neither the number of masked frames nor their content, even NaN, affects outputs or
    gradients.

    Raises:
        ValueError: If a size is not a positive integer.

    Example:

    >>> layer = StridedConvolution(4, stride=2)
    >>> tuple(layer(keras.ops.ones((1, 7, 3))).shape)
    (1, 4, 4)

    Reference:
        Amodei et al., "Deep Speech 2", ICML 2016, section 3.3, https://arxiv.org/abs/1512.02595
    """

    def __init__(
        self,
        units: int,
        stride: int = 2,
        kernel_size: int = 3,
        activation: Any = "relu",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_positive(units=units, stride=stride, kernel_size=kernel_size)
        self.units = units
        self.stride = stride
        self.kernel_size = kernel_size
        self.activation = keras.activations.get(activation)
        self.convolution = keras.layers.Conv1D(
            units,
            kernel_size,
            strides=stride,
            activation=activation,
            dtype=self.dtype_policy,
            name="convolution",
        )

    def build(self, input_shape: Any) -> None:
        self.convolution.build(input_shape)

    def call(self, inputs: Any, mask: Any = None) -> Any:
        before = (self.kernel_size - 1) // 2
        # Adds a frame, dropped below, because the convolution fails if its output is empty.
        after = self.kernel_size - 1 - before + self.stride
        padded = ops.pad(zero_padding(inputs, mask), [[0, 0], [before, after], [0, 0]])
        outputs = self.convolution(padded)[:, :-1]
        return zero_padding(outputs, self.compute_mask(inputs, mask))

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return None if mask is None else mask[:, :: self.stride]

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        batch, frames, _ = input_shape
        return batch, None if frames is None else -(-frames // self.stride), self.units
