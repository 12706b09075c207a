"""Random speed of waveforms, in training."""

import math
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.configured_layer import ConfiguredLayer


@keras.saving.register_keras_serializable(package="keras_seq")
class RandomSpeed(ConfiguredLayer):
    """Plays waveforms faster or slower, which also changes their pitch, in training only.

        y[n] = x[r n] by linear interpolation,  n = 0 ... floor((L - 1) / r)
        r ~ U(1 - change, 1 + change)

    A recognizer then sees more voices and paces than the recordings have. L is the number of real
    samples of a row, and each row has its own r.

    Shapes: B batch, N samples, M samples of the slowest row, N / (1 - change), rounded up.

    Args:
        change: Float in [0, 1), the largest relative change of the speed. Defaults to 0.1.
        seed: Optional integer, makes the speeds reproducible.

    Call arguments:
        inputs: Dict of float `samples` `(B, N)` and integers `lengths` `(B,)`, the number of real
            samples per row.
        training: Whether to change the speed.

    Returns:
        Samples `(B, M)` in their dtype, 0 after the lengths; and int32 lengths `(B,)`. Without
        training, the inputs.

    Raises:
        ValueError: If `change` is outside [0, 1).

    Example:

    >>> sounds = {"samples": keras.ops.ones((1, 100)), "lengths": keras.ops.array([80])}
    >>> samples, lengths = RandomSpeed(0.1, seed=1)(sounds, training=True)
    >>> tuple(samples.shape), 72 <= int(lengths[0]) <= 88
    ((1, 112), True)

    Reference:
        Ko, Peddinti, Povey and Khudanpur, "Audio Augmentation for Speech Recognition", Interspeech
        2015, section 2.2, which uses the speeds 0.9, 1 and 1.1
    """

    def __init__(self, change: float = 0.1, seed: int | None = None, **kwargs: Any) -> None:
        # No autocast: a policy must not round the samples.
        super().__init__(**{**kwargs, "autocast": False})
        if not 0 <= change < 1:
            raise ValueError(f"`change` must be in [0, 1), received {change!r}.")
        self.change = change
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, inputs_shape: Any) -> None:
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        samples, lengths = inputs["samples"], ops.cast(inputs["lengths"], "int32")
        if not training:
            return samples, lengths
        rows, count = backend.shape(samples)
        limits = (rows, 1), 1 - self.change, 1 + self.change
        speed = keras.random.uniform(*limits, "float32", seed=self.seed_generator)
        last = ops.cast(ops.maximum(lengths - 1, 0), "float32")
        changed = ops.cast(ops.floor(last / speed[:, 0]), "int32") + 1
        changed = ops.minimum(changed, self._slowest(count))
        changed = ops.where(lengths > 0, changed, 0)
        steps = ops.arange(self._slowest(count), dtype="int32")
        real = steps[None] < changed[:, None]
        places = ops.where(real, ops.cast(steps, "float32")[None] * speed, 0.0)
        before = ops.minimum(ops.cast(places, "int32"), count - 1)
        after = ops.minimum(before + 1, count - 1)
        share = ops.cast(places - ops.cast(before, "float32"), samples.dtype)
        first = ops.take_along_axis(samples, before, axis=1)
        second = ops.take_along_axis(samples, after, axis=1)
        heard = first + share * (second - first)
        return ops.where(real, heard, ops.zeros_like(heard)), changed

    def _slowest(self, count: Any) -> Any:
        """Returns the number of samples at the lowest speed: an integer, or a tensor of one."""
        if isinstance(count, int):
            return math.ceil(count / (1 - self.change))
        return ops.cast(ops.ceil(ops.cast(count, "float32") / (1 - self.change)), "int32")

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return None

    def compute_output_spec(self, inputs: Any, training: bool | None = None) -> Any:
        samples, lengths = inputs["samples"], inputs["lengths"]
        width = samples.shape[1]
        if training and width is not None:
            width = self._slowest(width)
        return (
            keras.KerasTensor((samples.shape[0], width), samples.dtype),
            keras.KerasTensor(lengths.shape, "int32"),
        )
