"""Images of attention weights during training."""

import os
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_seq.callbacks.counting_callback import PeriodicCallback, check_positive_integers
from keras_seq.storage import write_file

# Shape letters: T target steps, S source steps.


class AttentionSnapshots(PeriodicCallback):
    """Writes attention weights as images every N updates.

    Each matrix becomes one grayscale PNG file, `step-00000500-0.png` and so on, with one row per
    target step. Weight 1 is black and weight 0 is white.

    Args:
        attend: Function without arguments that returns a list of float arrays `(T, S)` in [0, 1],
            such as rows of the `attention` output of `model.with_attention()`.
        directory: Directory of the images, created with the first image.
        every: Positive integer N, updates between two snapshots.
        cell: Positive integer, side of the square of each weight in pixels.
        initial_step: Number of updates before this `fit`.

    Raises:
        ValueError: If `every` or `cell` is not a positive integer; in `fit`, if an array of
            `attend` does not have two axes.

    Example:

    >>> callback = AttentionSnapshots(lambda: [np.eye(3)], "attention", every=500)
    """

    _acts_at_end = False

    def __init__(
        self,
        attend: Callable[[], Sequence[Any]],
        directory: str | os.PathLike[str],
        every: int,
        cell: int = 12,
        initial_step: int = 0,
    ) -> None:
        super().__init__(every, initial_step)
        check_positive_integers(cell=cell)
        self.attend = attend
        self.directory = directory
        self.cell = cell

    def _act(self) -> None:
        os.makedirs(self.directory, exist_ok=True)
        for i, weights in enumerate(self.attend()):
            picture = attention_picture(weights, self.cell)
            write_file(Path(self.directory, f"step-{self.step:08d}-{i}.png"), picture)


def attention_picture(weights: Any, cell: int = 12) -> bytes:
    """Draws attention weights `(T, S)` as a grayscale PNG file. Weight 1 is black.

    Each weight is a square of `cell` pixels. Raises ValueError if the array does not have two axes.
    """
    weights = np.asarray(keras.ops.convert_to_numpy(weights), np.float64)
    if weights.ndim != 2:
        shape = weights.shape
        raise ValueError(f"Attention must be (target steps, source steps), received shape {shape}.")
    shades = np.round(255 * (1 - np.clip(weights, 0, 1))).astype(np.uint8)
    return grey_png(np.kron(shades, np.ones((cell, cell), np.uint8)))


def grey_png(pixels: np.ndarray) -> bytes:
    """Encodes 8-bit grayscale pixels, uint8 `(rows, columns)`, as a PNG file.

    Reference:
        W3C, "Portable Network Graphics (PNG) Specification", third edition,
        https://www.w3.org/TR/png-3/
    """
    rows, columns = pixels.shape
    # Each row starts with its filter type; 0 is no filter.
    content = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)

    def chunk(name: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)

    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(content)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)
