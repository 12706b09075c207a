"""Synthesizes spoken digits with espeak-ng if it is installed, otherwise with tones.

    python examples/spoken_digits.py [FOLDER]

The tones only resemble words: each digit has gliding resonances, some begin with a hiss, and every
speaker has a different pitch, tempo and timbre.
"""

import argparse
import functools
import shutil
import subprocess
import tempfile
import wave
from pathlib import Path

import numpy as np

RATE = 8000
WORDS = "zero one two three four five six seven eight nine".split()
# Per digit: seconds; start and end of two resonances in Hz; Hz of the initial hiss, or 0.
TONES = [
    (0.34, (300, 500), (2200, 900), 3200), (0.26, (650, 400), (900, 1300), 0),
    (0.24, (300, 350), (1700, 900), 2600), (0.28, (350, 280), (1200, 2300), 2000),
    (0.28, (550, 500), (850, 850), 1500), (0.30, (750, 350), (1200, 2100), 1500),
    (0.24, (400, 380), (2000, 1900), 3400), (0.36, (550, 450), (1800, 1100), 3400),
    (0.22, (450, 300), (1900, 2300), 0), (0.30, (700, 300), (1300, 2200), 0),
]  # fmt: skip


def tones(digit: int, generator: np.random.Generator) -> np.ndarray:
    """Digit of a random speaker: harmonics of a falling pitch, weighted by the resonances."""
    seconds, first, second, hiss = TONES[digit]
    place = np.linspace(0, 1, int(RATE * seconds * generator.uniform(0.75, 1.3)))
    pitch = generator.uniform(90, 230) * (1 - generator.uniform(0, 0.25) * place)
    tract = generator.uniform(0.92, 1.08)
    harmonics = np.arange(1, int(RATE / 2 / pitch.max()))[:, None]
    loudness = sum(
        1 / (1 + ((harmonics * pitch - tract * (start + (end - start) * place)) / 90) ** 2)
        for start, end in (first, second)
    )
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    voiced = (loudness * np.sin(harmonics * phase)).sum(axis=0)
    voiced *= np.minimum(1, 12 * np.minimum(place, 1 - place))
    if hiss:
        length = int(RATE * generator.uniform(0.06, 0.12))
        noise = np.convolve(generator.normal(size=length + 7), np.ones(8) / 8, "valid")
        carrier = np.cos(2 * np.pi * hiss * tract * np.arange(length) / RATE)
        voiced = np.concatenate([3 * noise * carrier * np.hanning(length), voiced])
    return voiced / np.abs(voiced).max()


@functools.cache
def espeak(digit: int, speed: int, pitch: int) -> np.ndarray:
    """Synthesizes a digit with espeak-ng, resampled to RATE."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["-v", "en", "-s", str(speed), "-p", str(pitch), "-w", f"{folder}/word.wav"]
        subprocess.run(["espeak-ng", *options, WORDS[digit]], check=True)
        with wave.open(f"{folder}/word.wav") as file:
            rate, frames = file.getframerate(), file.readframes(file.getnframes())
    sound = np.frombuffer(frames, "<i2") / 2**15
    places = np.arange(0, len(sound) - 1, rate / RATE)
    return np.interp(places, np.arange(len(sound)), sound) / np.abs(sound).max()


def say(digits, generator: np.random.Generator, voice: str | None = None, noise: float = 0.02):
    """Returns samples of digits with pauses and noise, and the position where each digit ends."""
    voice = voice or ("espeak" if shutil.which("espeak-ng") else "tones")
    parts, ends = [], []
    for digit in digits:
        parts.append(np.zeros(int(RATE * generator.uniform(0.04, 0.2))))
        if voice == "espeak":
            choice = 10 * generator.integers(12, 21), 10 * generator.integers(2, 9)
            sound = espeak(int(digit), *map(int, choice))
        else:
            sound = tones(digit, generator)
        parts.append(generator.uniform(0.4, 1.0) * sound)
        ends.append(sum(map(len, parts)))
    parts.append(np.zeros(int(RATE * generator.uniform(0.04, 0.2))))
    sound = 0.7 * np.concatenate(parts)
    sound += noise * generator.uniform(0.2, 1) * generator.normal(size=len(sound))
    return np.clip(sound, -1, 1).astype("float32"), ends


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", default="digits", type=Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for digit, word in enumerate(WORDS):
        samples, _ = say([digit], np.random.default_rng(digit))
        with wave.open(str(arguments.folder / f"{digit}-{word}.wav"), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            file.writeframes((samples * (2**15 - 1)).astype("<i2").tobytes())
    print(f"{len(WORDS)} digits in {arguments.folder}")


if __name__ == "__main__":
    main()
