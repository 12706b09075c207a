"""Random noise in waveforms, in training."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.configured_layer import ConfiguredLayer

# Part of the previous sample in a sample of noise: from hissing to rumbling.
_COLOR = 0.95


@keras.saving.register_keras_serializable(package="keras_seq")
class RandomNoise(ConfiguredLayer):
    """Adds noise of a random loudness and color to waveforms, in training only.

        y = x + rms(x) 10^(-r / 20) e / rms(e),  e_t = u_t + c u_{t-1}
        r ~ U(low, high) decibels,  c ~ U(-0.95, 0.95),  u_t ~ N(0, 1)

    A model that is trained on clean recordings takes any noise for speech. Each row has its own r
    and c, and stays clean with the probability 1 - rate.

    Shapes: B batch, N samples.

    Args:
        low, high: Floats, the least and the largest signal-to-noise ratio in decibels. Default to
            5 and 50.
        rate: Float in [0, 1], the share of rows with noise. Defaults to 0.8.
        seed: Optional integer, makes the noise reproducible.

    Call arguments:
        inputs: Dict of float `samples` `(B, N)` and integers `lengths` `(B,)`, the number of real
            samples per row.
        training: Whether to add noise.

    Returns:
        Samples `(B, N)` in their dtype; those after the lengths are unchanged. A silent row stays
        silent.

    Raises:
        ValueError: If `low` is above `high`, or `rate` is outside [0, 1].

    Example:

    >>> sounds = {"samples": keras.ops.ones((1, 4)), "lengths": keras.ops.array([3])}
    >>> noisy = RandomNoise(seed=1)(sounds, training=True)
    >>> tuple(noisy.shape), float(noisy[0, 3])
    ((1, 4), 1.0)
    """

    def __init__(
        self,
        low: float = 5.0,
        high: float = 50.0,
        rate: float = 0.8,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        # No autocast: a policy must not round the samples.
        super().__init__(**{**kwargs, "autocast": False})
        if low > high:
            raise ValueError(f"`low` must be at most `high`, received {low!r} and {high!r}.")
        if not 0 <= rate <= 1:
            raise ValueError(f"`rate` must be in [0, 1], received {rate!r}.")
        self.low = low
        self.high = high
        self.rate = rate
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, inputs_shape: Any) -> None:
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        samples = inputs["samples"]
        if not training:
            return samples
        rows, count = backend.shape(samples)
        lengths = ops.cast(inputs["lengths"], "int32")
        real = ops.arange(count, dtype="int32") < lengths[:, None]
        power = ops.sum(ops.where(real, ops.square(ops.cast(samples, "float32")), 0.0), axis=1)
        loudness = ops.sqrt(power / ops.cast(ops.maximum(lengths, 1), "float32"))
        ratio = self._uniform(rows, self.low, self.high)
        color = self._uniform(rows, -_COLOR, _COLOR)
        white = keras.random.normal((rows, count + 1), dtype="float32", seed=self.seed_generator)
        noise = white[:, 1:] + color * white[:, :-1]
        noise = noise / ops.sqrt(1 + ops.square(color))
        noisy = ops.cast(self._uniform(rows, 0.0, 1.0) < self.rate, "float32")
        scale = noisy * loudness[:, None] * ops.power(10.0, -ratio / 20)
        return samples + ops.cast(ops.where(real, scale * noise, 0.0), samples.dtype)

    def _uniform(self, rows: Any, low: float, high: float) -> Any:
        """Draws a number for each row, `(B, 1)`."""
        return keras.random.uniform((rows, 1), low, high, "float32", seed=self.seed_generator)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return None

    def compute_output_shape(self, inputs_shape: Any) -> Any:
        return inputs_shape["samples"]
