"""Log-mel spectrogram, the features of speech models."""

import math
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.checks import check_above_zero, check_choice, check_positive
from keras_seq.layers.internal.configured_layer import ConfiguredLayer
from keras_seq.layers.internal.scaled_dot_product import zero_padding

# Cosine windows: constant term and amplitude.
WINDOWS = {"hann": (0.5, 0.5), "hamming": (0.54, 0.46)}


@keras.saving.register_keras_serializable(package="keras_seq")
class LogMelSpectrogram(ConfiguredLayer):
    """Log-mel spectrogram of a waveform.

        x_t[n] = w[n] x[t step + n],  n = 0 ... L - 1
        P_t[k] = |DFT(x_t)[k]|^2
        y_t[m] = log(max(sum over k of H[k, m] P_t[k], floor))
        mel(f) = 2595 log10(1 + f / 700)

    The M triangles of H have their corners at M + 2 frequencies, evenly spaced in mel. Each is 1
    at its center and falls to 0 at the centers of its neighbors. w is the periodic Hann or Hamming
    window.

    Unlike `keras.layers.MelSpectrogram`, the layer has a mask, does not mirror the waveform at its
    ends, and does not scale by the loudest frame of the batch, so padding and other rows do not
    affect real frames.

    A frame is real if all its samples are. A causal layer assumes silence before the first sample
    and ends frame t with sample `(t + 1) step - 1`, so that each `step` samples of a stream yield
    one frame.

    Shapes: B batch, N samples, F frames, M mels.

    Args:
        sampling_rate: Positive integer, samples per second. Defaults to 16000.
        num_mels: Positive integer M. Defaults to 40.
        frame_length: L in samples as an integer, or in seconds as a float. Defaults to 0.025.
        frame_step: Step in samples (integer) or seconds (float), at most L. Defaults to 0.01.
        fft_length: Integer, L or more. Defaults to the next power of two.
        window: "hann" or "hamming". Defaults to "hann".
        lower_frequency: Lowest frequency in hertz, 0 or more. Defaults to 0.
        upper_frequency: Highest frequency in hertz, at most and by default half the sampling rate.
        floor: Positive number, the least power of a band: silence has 0. Defaults to 1e-6.
        causal: Whether to assume silence before the first sample. Defaults to False.

    Call arguments:
        inputs: Float samples `(B, N)`, or a dict with these as `samples` and integers `(B,)` as
            `lengths`, the number of real samples per row.

    Returns:
        Tensor `(B, F, M)` in the compute dtype, computed in float32 or more. F is
        `max(0, (N - L) // step + 1)`, or `N // step` if causal. Frames that are not real are 0.

    Masks: with `lengths`, the outputs carry the mask of real frames. The content of padded samples,
    even NaN, affects neither outputs nor gradients.

    Raises:
        ValueError: If a setting is out of range, a band is so narrow that it contains no frequency
            of the transform, or the inputs are not floats of shape `(B, N)`.

    Example:

    >>> layer = LogMelSpectrogram(sampling_rate=8000, num_mels=20)
    >>> samples = keras.ops.zeros((2, 8000))
    >>> tuple(layer({"samples": samples, "lengths": keras.ops.array([8000, 5000])}).shape)
    (2, 98, 20)

    Reference:
        Davis and Mermelstein, "Comparison of Parametric Representations for Monosyllabic Word
        Recognition", IEEE ASSP 28, 1980; scale and triangles: Young et al., "The HTK Book",
        section 5.4.
    """

    def __init__(
        self,
        sampling_rate: int = 16000,
        num_mels: int = 40,
        frame_length: float = 0.025,
        frame_step: float = 0.01,
        fft_length: int | None = None,
        window: str = "hann",
        lower_frequency: float = 0.0,
        upper_frequency: float | None = None,
        floor: float = 1e-6,
        causal: bool = False,
        **kwargs: Any,
    ) -> None:
        # No autocast: a policy must not round the samples.
        super().__init__(**{**kwargs, "autocast": False})
        self.sampling_rate = sampling_rate
        self.num_mels = num_mels
        self.frame_length = frame_length
        self.frame_step = frame_step
        self.fft_length = fft_length
        self.window = window
        self.lower_frequency = lower_frequency
        self.upper_frequency = upper_frequency
        self.floor = floor
        self.causal = causal
        self._set_sizes()
        offset, amplitude = WINDOWS[window]
        self._window = [
            offset - amplitude * math.cos(2 * math.pi * n / self._length)
            for n in range(self._length)
        ]
        lower, upper = float(lower_frequency), float(self._upper)
        self._triangles = _triangles(num_mels, self._points, sampling_rate, lower, upper)
        for mel, weights in enumerate(zip(*self._triangles, strict=True)):
            if not any(weights):
                raise ValueError(
                    f"Mel {mel} of {num_mels} is narrower than the "
                    f"{sampling_rate / self._points:g} Hz between two frequencies of the "
                    "transform, and would be empty: lower `num_mels` or raise `fft_length`."
                )

    def _set_sizes(self) -> None:
        """Computes the sizes in samples and raises ValueError for a setting out of range."""
        check_positive(sampling_rate=self.sampling_rate, num_mels=self.num_mels)
        self._length = self._in_samples(self.frame_length)
        self._step = self._in_samples(self.frame_step)
        self._points = self.fft_length or 1 << (self._length - 1).bit_length()
        if not 1 <= self._step <= self._length <= self._points:
            raise ValueError(
                "1 <= `frame_step` <= `frame_length` <= `fft_length` must hold, received "
                f"{self.frame_step!r}, {self.frame_length!r} and {self.fft_length!r}: "
                f"{self._step}, {self._length} and {self._points} samples."
            )
        check_choice("window", self.window, tuple(WINDOWS))
        half = self.sampling_rate / 2
        self._upper = half if self.upper_frequency is None else self.upper_frequency
        if not 0 <= self.lower_frequency < self._upper <= half:
            raise ValueError(
                "0 <= `lower_frequency` < `upper_frequency` <= half the sampling rate must hold, "
                f"received {self.lower_frequency!r} and {self.upper_frequency!r} at "
                f"{self.sampling_rate}."
            )
        check_above_zero(floor=self.floor)

    def _in_samples(self, span: float) -> int:
        return round(span * self.sampling_rate) if isinstance(span, float) else span

    def call(self, inputs: Any) -> Any:
        samples = _samples_of(inputs)
        if len(samples.shape) != 2 or "float" not in keras.backend.standardize_dtype(samples.dtype):
            raise ValueError(
                "The samples must be floats of shape (batch, samples), received "
                f"{samples.dtype} of shape {tuple(samples.shape)}: divide integers by their "
                "largest value."
            )
        if isinstance(inputs, dict):
            real = (
                ops.arange(backend.shape(samples)[1], dtype="int32") < _lengths_of(inputs)[:, None]
            )
            samples = zero_padding(samples[..., None], real)[..., 0]
        if self.causal:
            samples = ops.pad(samples, [[0, 0], [self._length - self._step, 0]])
        return zero_padding(self._transform(samples), self.compute_mask(inputs))

    def _transform(self, samples: Any) -> Any:
        """Returns all frames that lie entirely within the samples."""
        dtypes = (keras.backend.standardize_dtype(samples.dtype), self.compute_dtype)
        dtype = "float64" if "float64" in dtypes else "float32"
        count = self._count(backend.shape(samples)[1])
        if keras.backend.backend() == "torch" and count == 0:
            # torch fails on an empty Fourier transform.
            return ops.zeros((backend.shape(samples)[0], 0, self.num_mels), self.compute_dtype)
        # One more sample, because `ops.take` fails on an empty tensor with JAX.
        samples = ops.pad(samples, [[0, 0], [0, 1]])
        starts = ops.arange(count, dtype="int32") * self._step
        indices = starts[:, None] + ops.arange(self._length, dtype="int32")  # (F, L)
        frames = ops.take(ops.cast(samples, dtype), indices, axis=1)  # (B, F, L)
        frames = frames * ops.convert_to_tensor(self._window, dtype)
        # Padded explicitly, because the transform of TensorFlow fails without frames.
        frames = ops.pad(frames, [[0, 0], [0, 0], [0, self._points - self._length]])
        real, imaginary = ops.rfft(frames, self._points)
        power = ops.square(real) + ops.square(imaginary)  # (B, F, fft_length / 2 + 1)
        bands = ops.matmul(power, ops.convert_to_tensor(self._triangles, dtype))  # (B, F, M)
        return ops.cast(ops.log(ops.maximum(bands, self.floor)), self.compute_dtype)

    def _count(self, samples: Any) -> Any:
        count = (samples - self._length) // self._step + 1
        return max(0, count) if isinstance(count, int) else ops.maximum(count, 0)

    def initial_state(self, batch_size: Any) -> Any:
        """Returns the state of B streams before their first sample: silence `(B, L - step)`."""
        return ops.zeros((batch_size, self._length - self._step), "float32")

    def step(self, samples: Any, state: Any) -> tuple[Any, Any]:
        """Transforms the next samples of a stream. The layer must be causal.

        `samples` is a float tensor `(B, N)`, N a multiple of the step, and `state` is from
        `initial_state` or the previous step. Returns outputs `(B, N / step, M)` and the new state.
        """
        if not self.causal:
            raise ValueError("A stream needs a layer with `causal=True`.")
        if samples.shape[1] is not None and samples.shape[1] % self._step:
            raise ValueError(
                f"A chunk of a stream must have a multiple of {self._step} samples, received "
                f"{samples.shape[1]}: keep the rest for the next chunk."
            )
        history = ops.concatenate([ops.cast(state, samples.dtype), samples], axis=1)
        return self._transform(history), history[:, backend.shape(samples)[1] :]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        if not isinstance(inputs, dict):
            return None
        first = (self._step if self.causal else self._length) - 1
        # The index of the last sample of each frame. A cumulative sum works for unknown lengths.
        ones = ops.ones_like(_samples_of(inputs)[:, first :: self._step], dtype="int32")
        last = (ops.cumsum(ones, axis=1) - 1) * self._step + first
        return last < _lengths_of(inputs)[:, None]

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        shape = input_shape["samples"] if isinstance(input_shape, dict) else input_shape
        batch, samples = shape
        if samples is not None:
            before = self._length - self._step if self.causal else 0
            samples = self._count(samples + before)
        return batch, samples, self.num_mels


def _samples_of(inputs: Any) -> Any:
    return inputs["samples"] if isinstance(inputs, dict) else inputs


def _lengths_of(inputs: Any) -> Any:
    return ops.cast(inputs["lengths"], "int32")


def _triangles(mels: int, points: int, sampling_rate: int, lower: float, upper: float) -> Any:
    """Returns the mel filters H as `points // 2 + 1` rows of M weights."""

    def mel_of(frequency: float) -> float:
        return 2595 * math.log10(1 + frequency / 700)

    bottom = mel_of(lower)
    width = (mel_of(upper) - bottom) / (mels + 1)
    # Frequencies in units of `width` above `bottom`. The center of triangle m is at m + 1.
    heights = [
        (mel_of(sampling_rate * k / points) - bottom) / width for k in range(points // 2 + 1)
    ]
    return [[max(0.0, 1 - abs(height - m - 1)) for m in range(mels)] for height in heights]
