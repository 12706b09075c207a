"""SpecAugment: masks of speech features in training."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.configured_layer import ConfiguredLayer
from keras_seq.layers.internal.scaled_dot_product import zero_padding


@keras.saving.register_keras_serializable(package="keras_seq")
class SpecAugment(ConfiguredLayer):
    """Sets random bands of features and random spans of steps to 0, in training only.

        band:  width w ~ U{0 ... frequency_width}, begin ~ U{0 ... D - w}
        span:  width w ~ U{0 ... floor(time_share n)}, begin ~ U{0 ... n - w}, for n real steps

    The model learns not to depend on any one band or moment, which regularizes it on little speech.
    Apply it to normalized features, whose mean is 0.

    Shapes: B batch, T steps, D features.

    Args:
        frequency_masks: Non-negative integer, the number of bands. Defaults to 2.
        frequency_width: Non-negative integer, the most features of a band. Defaults to 8.
        time_masks: Non-negative integer, the number of spans. Defaults to 2.
        time_share: Float in [0, 1], the largest share of the real steps in a span. Defaults to 0.1.
        seed: Optional integer, makes the masks reproducible.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        mask: Optional bool tensor `(B, T)`, True at real steps, which come first; by default the
            Keras mask.
        training: Whether to mask.

    Returns:
        Tensor `(B, T, D)` in the dtype of the inputs, 0 at masked steps. The Keras mask is kept.

    Raises:
        ValueError: If a number is negative or `time_share` is above 1.

    Example:

    >>> layer = SpecAugment(frequency_masks=1, frequency_width=2, time_masks=0, seed=1)
    >>> tuple(layer(keras.ops.ones((1, 3, 4)), training=True).shape)
    (1, 3, 4)

    Reference:
        Park et al., "SpecAugment", Interspeech 2019, https://arxiv.org/abs/1904.08779, without time
        warping; spans in proportion to the length: Park et al., "SpecAugment on Large Scale
        Datasets", 2020, https://arxiv.org/abs/1912.05533
    """

    def __init__(
        self,
        frequency_masks: int = 2,
        frequency_width: int = 8,
        time_masks: int = 2,
        time_share: float = 0.1,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        for name, number in (
            ("frequency_masks", frequency_masks),
            ("frequency_width", frequency_width),
            ("time_masks", time_masks),
        ):
            if not isinstance(number, int) or number < 0:
                raise ValueError(f"`{name}` must be a non-negative integer, received {number!r}.")
        if not 0 <= time_share <= 1:
            raise ValueError(f"`time_share` must be in [0, 1], received {time_share!r}.")
        self.frequency_masks = frequency_masks
        self.frequency_width = frequency_width
        self.time_masks = time_masks
        self.time_share = time_share
        self.seed = seed
        self.supports_masking = True
        self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, inputs_shape: Any) -> None:
        self.built = True

    def call(self, inputs: Any, mask: Any = None, training: bool | None = None) -> Any:
        if mask is not None:
            inputs = zero_padding(inputs, mask)
        if not training:
            return inputs
        ones = ops.ones_like(inputs[..., 0], dtype="int32")  # (B, T)
        real = ones if mask is None else ops.cast(mask, "int32")
        steps = ops.cumsum(ones, axis=1) - 1
        lengths = ops.cast(ops.sum(real, axis=1), "float32")
        kept = ops.ones_like(inputs, dtype="bool")
        for _ in range(self.time_masks):
            span = self._inside(steps, lengths, ops.floor(self.time_share * lengths))
            kept = ops.logical_and(kept, ops.logical_not(span)[..., None])
        size = inputs.shape[-1]
        features = ops.zeros_like(ones[:, :1]) + ops.arange(size, dtype="int32")[None]  # (B, D)
        widest = ops.full_like(lengths, min(self.frequency_width, size))
        for _ in range(self.frequency_masks):
            band = self._inside(features, ops.full_like(lengths, size), widest)
            kept = ops.logical_and(kept, ops.logical_not(band)[:, None])
        return ops.where(kept, inputs, ops.zeros_like(inputs))

    def _inside(self, numbers: Any, lengths: Any, widest: Any) -> Any:
        """Draws an interval per row and returns which of the `numbers` `(B, N)` lie in it.

        The interval has at most `widest` `(B,)` integers below `lengths` `(B,)`.
        """
        width = ops.floor(self._uniform(lengths) * (widest + 1))
        begin = ops.floor(self._uniform(lengths) * (lengths - width + 1))
        numbers = ops.cast(numbers, "float32")
        end = (begin + width)[:, None]
        return ops.logical_and(numbers >= begin[:, None], numbers < end)

    def _uniform(self, like: Any) -> Any:
        """Draws float32 numbers in [0, 1) in the shape of `like`."""
        return keras.random.uniform(backend.shape(like), seed=self.seed_generator)

    def compute_output_shape(self, inputs_shape: Any) -> Any:
        return inputs_shape
