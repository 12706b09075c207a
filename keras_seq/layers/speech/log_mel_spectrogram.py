"""What a recogniser of speech reads: the loudness of a few bands, frame by frame."""

import math

import keras
from keras import ops

from keras_seq.layers.internal.scaled_dot_product import zero_padding

# Shape letters: B batch, N samples, L samples of a frame, F frames, M mels.

WINDOWS = {"hann": (0.5, 0.5), "hamming": (0.54, 0.46)}


@keras.saving.register_keras_serializable(package="keras_seq")
class LogMelSpectrogram(keras.layers.Layer):
    """Log-mel spectrogram of a waveform.

        x_t[n] = w[n] x[t step + n],  n = 0 ... L - 1
        P_t[k] = |DFT(x_t)[k]|^2
        y_t[m] = log(max(sum over k of H[k, m] P_t[k], floor))
        mel(f) = 2595 log10(1 + f / 700)

    The M triangles of H have their corners at M + 2 frequencies, evenly spaced
    in mel; each is 1 at its middle and 0 from its neighbours' middles on. w is
    the periodic Hann or Hamming window.

    `keras.layers.MelSpectrogram` mirrors the waveform at its ends, so that
    padding changes real frames, and cuts off relative to the loudest frame of
    the whole batch; it has no mask.

    A frame is real where all its samples are. With `causal` there is silence
    before the first sample, and frame t ends with sample `(t + 1) step - 1`, so
    that each `step` samples of a stream give one frame.

    Shapes: B batch, N samples, F frames, M mels.

    Args:
        sampling_rate: Positive integer, samples a second.
        num_mels: Positive integer M.
        frame_length: Integer L in samples, or float in seconds.
        frame_step: Integer in samples, at most L, or float in seconds.
        fft_length: Integer, L at least; the next power of two by default.
        window: "hann" or "hamming".
        lower_frequency: Number in hertz, 0 at least.
        upper_frequency: Number in hertz, at most half the sampling rate, which
            is the default.
        floor: Positive number, the least power in a band. Digital silence has none.
        causal: Whether there is silence before the first sample.

    Call arguments:
        inputs: Float samples `(B, N)`; or a dict of these as `samples` and, as
            `lengths`, integers `(B,)`: how many of them are real.

    Returns:
        Tensor `(B, F, M)` in the compute dtype, computed in float32 at least. F
        is `max(0, (N - L) // step + 1)`; causal, it is `N // step`. Frames that
        are not real are 0.

    Masks: with `lengths`, makes the mask of real frames. What samples that are
    not real hold, NaN included, reaches neither the outputs nor the gradients.

    Raises:
        ValueError: If a setting is out of range, the bands are so narrow that
            one has no frequency of the transform in it, or the inputs are no
            floats of shape `(B, N)`.

    Example:

    >>> layer = LogMelSpectrogram(sampling_rate=8000, num_mels=20)
    >>> samples = keras.ops.zeros((2, 8000))
    >>> tuple(layer({"samples": samples, "lengths": keras.ops.array([8000, 5000])}).shape)
    (2, 98, 20)

    Reference:
        Davis and Mermelstein, "Comparison of Parametric Representations for
        Monosyllabic Word Recognition", IEEE ASSP 28, 1980; the scale and the
        triangles: Young et al., "The HTK Book", section 5.4.
    """

    def __init__(
        self,
        sampling_rate=16000,
        num_mels=40,
        frame_length=0.025,
        frame_step=0.01,
        fft_length=None,
        window="hann",
        lower_frequency=0.0,
        upper_frequency=None,
        floor=1e-6,
        causal=False,
        **kwargs,
    ):
        # Samples keep their precision under every policy.
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
        for name in ("sampling_rate", "num_mels"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer, received {value!r}.")
        self._length = self._in_samples(frame_length)
        self._step = self._in_samples(frame_step)
        self._points = fft_length or 1 << (self._length - 1).bit_length()
        top = sampling_rate / 2 if upper_frequency is None else upper_frequency
        if not 1 <= self._step <= self._length <= self._points:
            raise ValueError(
                "1 <= `frame_step` <= `frame_length` <= `fft_length` must hold, received "
                f"{frame_step!r}, {frame_length!r} and {fft_length!r}: "
                f"{self._step}, {self._length} and {self._points} samples."
            )
        if window not in WINDOWS:
            raise ValueError(f'`window` must be "hann" or "hamming", received {window!r}.')
        if not 0 <= lower_frequency < top <= sampling_rate / 2:
            raise ValueError(
                "0 <= `lower_frequency` < `upper_frequency` <= half the sampling rate must hold, "
                f"received {lower_frequency!r} and {upper_frequency!r} at {sampling_rate}."
            )
        if floor <= 0:
            raise ValueError(f"`floor` must be positive, received {floor!r}.")
        level, swing = WINDOWS[window]
        self._window = [
            level - swing * math.cos(2 * math.pi * n / self._length) for n in range(self._length)
        ]
        self._triangles = _triangles(
            num_mels, self._points, sampling_rate, float(lower_frequency), float(top)
        )
        for mel, weights in enumerate(zip(*self._triangles, strict=True)):
            if not any(weights):
                raise ValueError(
                    f"Mel {mel} of {num_mels} is narrower than the "
                    f"{sampling_rate / self._points:g} Hz between two frequencies of the "
                    "transform, and would be empty: lower `num_mels` or raise `fft_length`."
                )

    def _in_samples(self, span):
        return round(span * self.sampling_rate) if isinstance(span, float) else span

    def call(self, inputs):
        samples = _samples_of(inputs)
        if len(samples.shape) != 2 or "float" not in keras.backend.standardize_dtype(samples.dtype):
            raise ValueError(
                "The samples must be floats of shape (batch, samples), received "
                f"{samples.dtype} of shape {tuple(samples.shape)}: divide integers by their "
                "largest value."
            )
        if isinstance(inputs, dict):
            places = ops.arange(ops.shape(samples)[1], dtype="int32")
            samples = zero_padding(samples[..., None], places < _lengths_of(inputs)[:, None])[
                ..., 0
            ]
        if self.causal:
            samples = ops.pad(samples, [[0, 0], [self._length - self._step, 0]])
        return zero_padding(self._transform(samples), self.compute_mask(inputs))

    def _transform(self, samples):
        """The frames that lie wholly within the samples."""
        doubles = "float64" in (keras.backend.standardize_dtype(samples.dtype), self.compute_dtype)
        dtype = "float64" if doubles else "float32"
        count = self._count(ops.shape(samples)[1])
        if keras.backend.backend() == "torch" and count == 0:
            # torch fails on a Fourier transform of nothing.
            return ops.zeros((ops.shape(samples)[0], 0, self.num_mels), self.compute_dtype)
        # JAX cannot take, not even nothing, from nothing.
        samples = ops.pad(samples, [[0, 0], [0, 1]])
        starts = ops.arange(count, dtype="int32") * self._step
        places = starts[:, None] + ops.arange(self._length, dtype="int32")  # (F, L)
        frames = ops.take(ops.cast(samples, dtype), places, axis=1)  # (B, F, L)
        frames = frames * ops.convert_to_tensor(self._window, dtype)
        # TensorFlow would do so itself, but fails where there is no frame.
        frames = ops.pad(frames, [[0, 0], [0, 0], [0, self._points - self._length]])
        real, imaginary = ops.rfft(frames, self._points)
        power = ops.square(real) + ops.square(imaginary)  # (B, F, fft_length / 2 + 1)
        bands = ops.matmul(power, ops.convert_to_tensor(self._triangles, dtype))  # (B, F, M)
        return ops.cast(ops.log(ops.maximum(bands, self.floor)), self.compute_dtype)

    def _count(self, samples):
        count = (samples - self._length) // self._step + 1
        return max(0, count) if isinstance(count, int) else ops.maximum(count, 0)

    def initial_state(self, batch_size):
        """What a causal layer has heard before the first sample: silence.

        Args:
            batch_size: Integer B.

        Returns:
            Float32 zeros `(B, L - step)`.
        """
        return ops.zeros((batch_size, self._length - self._step), "float32")

    def step(self, samples, state):
        """Some samples of a stream, in a causal layer.

        Args:
            samples: Float tensor `(B, N)`, N a multiple of the step.
            state: From `initial_state` or the samples before.

        Returns:
            outputs: Tensor `(B, N / step, M)`.
            state: The last samples, which the next frame sees again.

        Raises:
            ValueError: If the layer is not causal, or N is no multiple of the step.
        """
        if not self.causal:
            raise ValueError("A stream needs a layer with `causal=True`.")
        if samples.shape[1] is not None and samples.shape[1] % self._step:
            raise ValueError(
                f"A piece of a stream must have a multiple of {self._step} samples, received "
                f"{samples.shape[1]}: keep the rest for the next piece."
            )
        heard = ops.concatenate([ops.cast(state, samples.dtype), samples], axis=1)
        return self._transform(heard), heard[:, ops.shape(samples)[1] :]

    def compute_mask(self, inputs, mask=None):
        if not isinstance(inputs, dict):
            return None
        first = (self._step if self.causal else self._length) - 1
        # The last sample of each frame; counted like this, symbolic tensors of any length do.
        last = ops.ones_like(_samples_of(inputs)[:, first :: self._step], dtype="int32")
        places = (ops.cumsum(last, axis=1) - 1) * self._step + first
        return places < _lengths_of(inputs)[:, None]

    def compute_output_shape(self, input_shape):
        shape = input_shape["samples"] if isinstance(input_shape, dict) else input_shape
        batch, samples = shape
        if samples is not None:
            before = self._length - self._step if self.causal else 0
            samples = self._count(samples + before)
        return batch, samples, self.num_mels

    def get_config(self):
        config = super().get_config()
        config.pop("autocast", None)
        names = (
            "sampling_rate", "num_mels", "frame_length", "frame_step", "fft_length", "window",
            "lower_frequency", "upper_frequency", "floor", "causal",
        )  # fmt: skip
        return {**config, **{name: getattr(self, name) for name in names}}


def _samples_of(inputs):
    return inputs["samples"] if isinstance(inputs, dict) else inputs


def _lengths_of(inputs):
    return ops.cast(inputs["lengths"], "int32")


def _triangles(mels, points, sampling_rate, lower, upper):
    """H as a list of `points // 2 + 1` rows of M weights."""

    def mel_of(frequency):
        return 2595 * math.log10(1 + frequency / 700)

    bottom = mel_of(lower)
    width = (mel_of(upper) - bottom) / (mels + 1)
    # How many widths a frequency is above the lowest corner; triangle m has its middle at m + 1.
    heights = [
        (mel_of(sampling_rate * k / points) - bottom) / width for k in range(points // 2 + 1)
    ]
    return [[max(0.0, 1 - abs(height - m - 1)) for m in range(mels)] for height in heights]
