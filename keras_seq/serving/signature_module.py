"""TensorFlow module of an export, and helpers for signatures."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import tensorflow as tf

from keras_seq import backend
from keras_seq.serving.compaction import compact
from keras_seq.text import EOS_ID, PAD_ID, UNK_ID

# Shape letters: B batch, S steps.

# Sources are padded to a multiple of this width. TensorFlow caches a compiled program for each
# input shape, so without padding the memory of a server would grow with each new source length.
_WIDTH = 8


class SignatureModule(tf.Module):
    """Variables of a model, and the signatures that use the variables.

    The model itself must not be an attribute: Keras objects restore their variables in Python, but
    not in the session of a model server. `functions` maps names to signatures; the signature `ids`
    contains no text operations.
    """

    def __init__(self, model: Any, functions: Mapping[str, Any]) -> None:
        super().__init__()
        self.weights = [weight.value for weight in model.weights]
        # Use a namespace, because TensorFlow would save function attributes a second time.
        self._functions = SimpleNamespace(**functions)

    def save(self, version: Path, *, ids_only: bool = False) -> None:
        """Writes a SavedModel into an empty directory.

        With `ids_only`, only the signature `ids` is saved, also as `serving_default`. A server
        without text operations cannot load the other signatures.
        """
        functions = dict(vars(self._functions))
        if ids_only:
            functions = dict.fromkeys(("serving_default", "ids"), functions["ids"])
        # Omit the Python source locations of operations, which take 25 % of the file.
        options = tf.saved_model.SaveOptions(experimental_debug_stripper=True)
        with _without_notes():
            tf.saved_model.save(self, str(version), signatures=functions, options=options)
        compact(version)


@contextlib.contextmanager
def _without_notes() -> Iterator[None]:
    """Hides TensorFlow's notes, which name a temporary directory; warnings are still shown."""
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(max(level, logging.WARNING))
    try:
        yield
    finally:
        logger.setLevel(level)


def require_tensorflow() -> None:
    """Raises RuntimeError if Keras runs on another backend."""
    if backend.name() != "tensorflow":
        raise RuntimeError(
            f"Only TensorFlow writes a SavedModel, received the backend {backend.name()!r}: set "
            "KERAS_BACKEND=tensorflow; the weights are the same on every backend."
        )


def signature(**inputs: tuple[int | Sequence[int | None], Any]) -> Any:
    """Returns a decorator that creates a signature with inputs of a given shape and dtype.

    An integer instead of a shape is the rank of an input whose sizes are all unknown.
    """
    specs = [
        tf.TensorSpec([None] * shape if isinstance(shape, int) else shape, dtype, name=name)
        for name, (shape, dtype) in inputs.items()
    ]
    return tf.function(input_signature=specs, autograph=False)


def padding_steps(rows: Any) -> Any:
    """Returns the number of steps, at least 1, that pads the length to a multiple of `_WIDTH`."""
    return _WIDTH - tf.shape(rows)[1] % _WIDTH


def source_lengths(source: Any) -> Any:
    """Returns the number of tokens in each row, without padding and end tokens."""
    real = (source != PAD_ID) & (source != EOS_ID)
    return tf.reduce_sum(tf.cast(real, tf.int32), axis=1)


def with_end_token(source: Any) -> Any:
    """Appends an end token to each row without an end token, and pads the rows."""
    source = tf.pad(source, [[0, 0], [0, padding_steps(source)]])  # (B, S + padding)
    steps = tf.range(tf.shape(source)[1])
    lengths = source_lengths(source)[:, None]
    return tf.where(steps < lengths, source, tf.where(steps == lengths, EOS_ID, PAD_ID))


def valid_ids(ids: Any, vocabulary_size: int, *, end_stops: bool = True) -> Any:
    """Replaces ids that a tokenizer cannot produce, in int32 ids `(B, S)` from a client.

    Begin tokens and ids outside the vocabulary become the unknown token. Everything after the first
    padding becomes padding. With `end_stops`, the end token and everything after it also become
    padding; otherwise the end token becomes the unknown token.
    """
    stop = (ids == PAD_ID) | (ids == EOS_ID) if end_stops else ids == PAD_ID
    real = tf.cumsum(tf.cast(stop, tf.int32), axis=1) == 0
    known = (ids == UNK_ID) | ((ids > EOS_ID) & (ids < vocabulary_size))
    return tf.where(real, tf.where(known, ids, UNK_ID), PAD_ID)
