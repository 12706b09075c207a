"""Small recordings of tones, and files that list them with their words."""

import io
import random
import wave

import numpy as np

RATE = 8000
PITCHES = {"low": 300, "high": 1500}


def write_wave(path, channels, rate=8000):
    """Writes int16 channels `(N, C)`."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(channels.astype("<i2").tobytes())
    return path


def write_flac(path, channels, rate):
    """Writes int16 channels `(N, C)`."""
    import soundfile

    soundfile.write(path, channels.astype("<i2"), rate, format="FLAC")
    return path


def flac_that_declares(samples, rate, channels):
    """Returns a FLAC file of a few bytes whose header declares a number of samples."""
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, np.zeros((1, channels)), rate, format="FLAC")
    content = bytearray(file.getvalue())
    # The number takes 36 bits; the rate, the channels and the bits of a sample are before it.
    number = int.from_bytes(content[18:26], "big") >> 36 << 36 | samples
    content[18:26] = number.to_bytes(8, "big")
    return bytes(content)


def write_sounds(folder, count, seed, mixed=False):
    """Writes recordings of one to three tones, and the file that lists them with their words.

    With `mixed`, every tenth recording is a FLAC file with twice the sample rate.
    """
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    lines = []
    for number in range(count):
        words = random.Random(seed + number).choices(sorted(PITCHES), k=1 + number % 3)
        parts = []
        factor = 2 if mixed and number % 10 == 9 else 1
        for word in words:
            times = np.arange(factor * generator.integers(1000, 1500)) / (factor * RATE)
            parts += [np.sin(2 * np.pi * PITCHES[word] * times), np.zeros(factor * 600)]
        samples = np.concatenate(parts) + generator.normal(scale=0.01, size=sum(map(len, parts)))
        name = f"{seed}-{number}.{'wav' if factor == 1 else 'flac'}"
        write = write_wave if factor == 1 else write_flac
        write(folder / name, np.round(samples * 2**14)[:, None], factor * RATE)
        lines.append(f"{name}\t{' '.join(words)}\n")
    path = folder / f"{seed}.tsv"
    path.write_text("".join(lines))
    return path


def write_streams(folder, count, seed):
    """Writes recordings of two to four tones, and the file with the spans of the high ones."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    lines = []
    for number in range(count):
        parts, spans, time = [], [], 0
        for word in generator.choice(sorted(PITCHES), generator.integers(2, 5)).tolist():
            times = np.arange(generator.integers(1000, 1500)) / RATE
            gap = np.zeros(generator.integers(1800, 2400))
            parts += [np.sin(2 * np.pi * PITCHES[word] * times), gap]
            if word == "high":
                spans.append(f"high:{time / RATE:.4f}-{(time + len(times)) / RATE:.4f}")
            time += len(times) + len(gap)
        samples = np.concatenate(parts) + generator.normal(scale=0.01, size=time)
        name = f"{seed}-{number}.wav"
        write_wave(folder / name, np.round(samples * 2**14)[:, None])
        lines.append(f"{name}\t{' '.join(spans) or '-'}\n")
    path = folder / f"{seed}.tsv"
    path.write_text("".join(lines))
    return path
