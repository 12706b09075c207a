"""The public recordings of spoken digits: single digits, strings of digits, and a wake word."""

from __future__ import annotations

import io
import pathlib
import random
import wave
import zipfile

import numpy as np

RATE = 8000
WORDS = "zero one two three four five six seven eight nine".split()
# Recordings of each speaker and digit by number: the test set is that of the data's own split.
PARTS = {"test": range(5), "valid": range(5, 10), "train": range(10, 10**6)}
WAKE_WORD = "seven"
# Strings of digits, streams with the wake word, and minutes without it.
STRINGS, STREAMS, MINUTES = 200, 200, 60


def unpack(archive: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes the recordings and, for each part, a file of texts and a file of spans."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive) as content:
        content.extractall(folder)
        names = sorted(name for name in content.namelist() if name.endswith(".wav"))
    for part, numbers in PARTS.items():
        chosen = [name for name in names if int(pathlib.Path(name).stem.split("_")[2]) in numbers]
        words = [WORDS[int(name.split("_")[0])] for name in chosen]
        rows = list(zip(chosen, words, strict=True))
        (folder / f"{part}.tsv").write_text("".join(f"{name}\t{word}\n" for name, word in rows))
        spans = (f"{name}\t{word if word == WAKE_WORD else '-'}\n" for name, word in rows)
        (folder / f"wake-{part}.tsv").write_text("".join(spans))


def write_small(archive: pathlib.Path) -> None:
    """Writes an archive of short tones instead of digits, 14 of each of two."""
    time = np.arange(RATE // 4) / RATE
    with zipfile.ZipFile(archive, "w") as content:
        for digit, pitch in enumerate((300.0, 900.0)):
            for number in range(14):
                file = io.BytesIO()
                _write(file, 0.5 * np.sin(2 * np.pi * pitch * (1 + number / 100) * time))
                content.writestr(f"{digit}_tone_{number}.wav", file.getvalue())


def write_strings(folder: pathlib.Path, part: str, seed: int) -> pathlib.Path:
    """Joins three to five recordings each to strings of digits, and lists them in a file."""
    generator, rows = random.Random(seed), _rows(folder, part)
    lines = []
    for number in range(STRINGS):
        chosen = generator.choices(rows, k=generator.randint(3, 5))
        name = f"string-{part}-{number}.wav"
        _write(folder / name, np.concatenate([_read(folder / path) for path, _ in chosen]))
        lines.append(f"{name}\t{' '.join(word for _, word in chosen)}\n")
    path = folder / f"strings-{part}.tsv"
    path.write_text("".join(lines))
    return path


def write_streams(folder: pathlib.Path, part: str, seed: int) -> tuple[pathlib.Path, pathlib.Path]:
    """Writes streams of six digits with the wake word, and minutes of other digits, in noise.

    Silences of up to 0.8 seconds are between the digits, and the signal is 8 to 40 decibels above
    the noise. Returns the files that list both.
    """
    generator, rows = np.random.default_rng(seed), _rows(folder, part)
    wake = [path for path, word in rows if word == WAKE_WORD]
    other = [path for path, word in rows if word != WAKE_WORD]

    def stream(name: str, seconds: float, digits: int, share: float) -> str:
        parts: list[np.ndarray] = []
        spans, time = [], 0
        while len(parts) < 2 * digits and time < seconds * RATE:
            is_wake = generator.random() < share
            samples = _read(folder / str(generator.choice(wake if is_wake else other)))
            gap = np.zeros(int(generator.uniform(0, 0.8) * RATE), np.float32)
            if is_wake:
                begin, end = time / RATE, (time + len(samples)) / RATE
                spans.append(f"{WAKE_WORD}:{begin:.4f}-{end:.4f}")
            parts += [samples, gap]
            time += len(samples) + len(gap)
        sound = np.concatenate(parts)
        loudness = np.sqrt(np.mean(sound**2)) * 10 ** (-generator.uniform(8, 40) / 20)
        _write(folder / name, sound + loudness * generator.normal(size=len(sound)))
        return f"{name}\t{' '.join(spans) or '-'}\n"

    with_word = [stream(f"stream-{part}-{i}.wav", 60, 6, 0.2) for i in range(STREAMS)]
    without = [stream(f"other-{part}-{i}.wav", 60, 10**6, 0.0) for i in range(MINUTES)]
    files = folder / f"streams-{part}.tsv", folder / f"others-{part}.tsv"
    for path, lines in zip(files, (with_word, without), strict=True):
        path.write_text("".join(lines))
    return files


def _rows(folder: pathlib.Path, part: str) -> list[list[str]]:
    return [line.split("\t") for line in (folder / f"{part}.tsv").read_text().splitlines()]


def _read(path: pathlib.Path) -> np.ndarray:
    with wave.open(io.BytesIO(path.read_bytes())) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (RATE, 1, 2):
            raise ValueError(f"{path}: expected one channel of 16 bits at {RATE} Hz")
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    return (samples / 2**15).astype(np.float32)


def _write(path: pathlib.Path | io.BytesIO, samples: np.ndarray) -> None:
    target = path if isinstance(path, io.BytesIO) else str(path)
    with wave.open(target, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((np.clip(samples, -1, 1 - 2**-15) * 2**15).round().astype("<i2").tobytes())
