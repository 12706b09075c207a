"""Fewer frames: a convolution over time with a stride, and the mask that goes with it."""

import keras
from keras import ops

from keras_seq.layers.internal.scaled_dot_product import zero_padding

# Shape letters: B batch, T frames, D features, U units, F frames that are left.


@keras.saving.register_keras_serializable(package="keras_seq")
class StridedConvolution(keras.layers.Layer):
    """Convolution over time that leaves one frame of several.

        y_t = activation(b + sum over i of W_i x_{stride t + i - (kernel_size - 1) // 2})

    with 0 for what lies before the first frame and behind the last. Speech has more
    frames than labels by far, and recurrent layers take their time for each.

    `keras.layers.Conv1D` with padding "same" puts its windows elsewhere when the number
    of frames changes from odd to even, so that padding changes real frames; and its mask
    keeps the old length.

    Shapes: B batch, T frames, D features, U units, F frames that are left.

    Args:
        units: Positive integer U.
        stride: Positive integer, how many frames become one.
        kernel_size: Positive integer, how many frames each of them sees.
        activation: Of `keras.activations`.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        mask: Optional bool tensor `(B, T)`, True where a frame is real. Filled in by
            Keras from `inputs` when not given.

    Returns:
        Tensor `(B, F, U)` in the compute dtype, F = T / stride rounded up, 0 at masked
        frames.

    Masks: frame t is real where frame `stride t` of the inputs was; so of n real frames
    n / stride are left, rounded up. What a masked frame holds, NaN included, and how many
    there are change neither outputs nor gradients.

    Raises:
        ValueError: If a size is not a positive integer.

    Example:

    >>> layer = StridedConvolution(4, stride=2)
    >>> tuple(layer(keras.ops.ones((1, 7, 3))).shape)
    (1, 4, 4)

    Reference:
        Amodei et al., "Deep Speech 2", ICML 2016, section 3.3,
        https://arxiv.org/abs/1512.02595
    """

    def __init__(self, units, stride=2, kernel_size=3, activation="relu", **kwargs):
        super().__init__(**kwargs)
        sizes = {"units": units, "stride": stride, "kernel_size": kernel_size}
        for name, value in sizes.items():
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer, received {value!r}.")
        self.units = units
        self.stride = stride
        self.kernel_size = kernel_size
        self.activation = keras.activations.get(activation)
        self.supports_masking = True
        self.convolution = keras.layers.Conv1D(
            units,
            kernel_size,
            strides=stride,
            activation=activation,
            dtype=self.dtype_policy,
            name="convolution",
        )

    def build(self, input_shape):
        self.convolution.build(input_shape)

    def call(self, inputs, mask=None):
        before = (self.kernel_size - 1) // 2
        # One more than is needed, and dropped: Keras' convolution fails where nothing comes out.
        behind = self.kernel_size - 1 - before + self.stride
        padded = ops.pad(zero_padding(inputs, mask), [[0, 0], [before, behind], [0, 0]])
        outputs = self.convolution(padded)[:, :-1]
        return zero_padding(outputs, self.compute_mask(inputs, mask))

    def compute_mask(self, inputs, mask=None):
        return None if mask is None else mask[:, :: self.stride]

    def compute_output_shape(self, input_shape):
        batch, frames, _ = input_shape
        return batch, None if frames is None else -(-frames // self.stride), self.units

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "stride": self.stride,
            "kernel_size": self.kernel_size,
            "activation": keras.activations.serialize(self.activation),
        }
