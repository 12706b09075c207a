"""Pictures of what the model looks at while it learns."""

import os
import struct
import zlib
from pathlib import Path

import keras
import numpy as np

from keras_seq.callbacks.counting_callback import CountingCallback
from keras_seq.storage import write_file

# Shape letters: T target steps, S source steps.


class AttentionSnapshots(CountingCallback):
    """Writes attention weights as pictures every so many updates.

    One PNG in shades of grey for each matrix, a row for each target step, black
    where all of the attention is: `step-00000500-0.png`, and so on.

    Args:
        attend: Function without arguments that gives a list of float arrays `(T, S)` in
            [0, 1], such as rows of the `attention` of `model.with_attention()`.
        directory: Where the pictures go; made when the first is written.
        every: Positive integer, updates between two looks.
        cell: Positive integer, pixels of the side of each weight's square.
        initial_step: Updates done before this `fit`.

    Raises:
        ValueError: If `every` or `cell` is not a positive integer, or, in `fit`, what
            `attend` gives has not two axes.

    Example:

    >>> callback = AttentionSnapshots(lambda: [np.eye(3)], "attention", every=500)
    """

    def __init__(self, attend, directory, every, cell=12, initial_step=0):
        super().__init__(initial_step)
        for name, value in (("every", every), ("cell", cell)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer, received {value!r}.")
        self.attend = attend
        self.directory = directory
        self.every = every
        self.cell = cell

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        if self._due(self.every):
            # On JAX `fit` holds the weights itself; to ask for the model puts them back into it.
            _ = self.model
            self._write()

    def _write(self):
        os.makedirs(self.directory, exist_ok=True)
        for i, weights in enumerate(self.attend()):
            picture = attention_picture(weights, self.cell)
            write_file(Path(self.directory, f"step-{self.step:08d}-{i}.png"), picture)


def attention_picture(weights, cell=12):
    """The bytes of a PNG file of weights `(T, S)` in [0, 1], black where all of them is.

    Args:
        weights: Float array or tensor.
        cell: Positive integer, pixels of the side of each weight's square.
    """
    weights = np.asarray(keras.ops.convert_to_numpy(weights), np.float64)
    if weights.ndim != 2:
        raise ValueError(
            "Attention must be an array (target steps, source steps), received one of shape "
            f"{weights.shape}."
        )
    shades = np.round(255 * (1 - np.clip(weights, 0, 1))).astype(np.uint8)
    return grey_png(np.kron(shades, np.ones((cell, cell), np.uint8)))


def grey_png(pixels):
    """The bytes of a PNG file of 8-bit grey pixels, uint8 `(rows, columns)`.

    Reference:
        W3C, "Portable Network Graphics (PNG) Specification", third edition,
        https://www.w3.org/TR/png-3/
    """
    rows, columns = pixels.shape
    # Each row begins with the number of its filter, 0 for none.
    content = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)

    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(content)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)
