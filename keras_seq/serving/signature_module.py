"""The TensorFlow module that becomes a SavedModel: variables and the functions that use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """Variables of a model, and the functions that a server offers over them.

    The model itself must not be an attribute: Keras objects restore their variables in Python, but
    not in the session of a model server. Of the signatures in `functions`, `ids` has no text
    operations; `ids_only` needs it.
    """

    def __init__(self, model: Any, functions: Mapping[str, Any]) -> None:
        super().__init__()
        self.weights = [weight.value for weight in model.weights]
        # Not as attributes, because functions that are attributes are saved a second time.
        self._functions = SimpleNamespace(**functions)

    def save(self, version: Path, *, ids_only: bool = False) -> None:
        """Writes a SavedModel into an empty directory.

        With `ids_only` the operations that turn text into ids are omitted. A server without them
        cannot load a graph that contains one.
        """
        functions = dict(vars(self._functions))
        if ids_only:
            functions = dict.fromkeys(("serving_default", "ids"), functions["ids"])
        tf.saved_model.save(
            self,
            str(version),
            signatures=functions,
            # Omits the Python source location of each operation, a quarter of the file.
            options=tf.saved_model.SaveOptions(experimental_debug_stripper=True),
        )
        compact(version)


def require_tensorflow() -> None:
    """Raises RuntimeError if Keras runs on another backend."""
    if backend.name() != "tensorflow":
        raise RuntimeError(
            f"Only TensorFlow writes a SavedModel, received the backend {backend.name()!r}: set "
            "KERAS_BACKEND=tensorflow; the weights are the same on every backend."
        )


def signature(**inputs: tuple[int | Sequence[int | None], Any]) -> Any:
    """Decorator that makes a function into a signature, from the shape and dtype of each input.

    A rank instead of a shape leaves every dimension unknown.
    """
    specs = [
        tf.TensorSpec([None] * shape if isinstance(shape, int) else shape, dtype, name=name)
        for name, (shape, dtype) in inputs.items()
    ]
    return tf.function(input_signature=specs, autograph=False)


def padding_steps(rows: Any) -> Any:
    """Number of steps to append to rows of ids: at least one, up to a multiple of `_WIDTH`."""
    return _WIDTH - tf.shape(rows)[1] % _WIDTH


def source_lengths(source: Any) -> Any:
    """Number of tokens of each row, without padding and end tokens."""
    real = (source != PAD_ID) & (source != EOS_ID)
    return tf.reduce_sum(tf.cast(real, tf.int32), axis=1)


def with_end_token(source: Any) -> Any:
    """Puts the end token after the last token of each row, whether the row has one or not."""
    source = tf.pad(source, [[0, 0], [0, padding_steps(source)]])  # (B, S + padding)
    steps = tf.range(tf.shape(source)[1])
    lengths = source_lengths(source)[:, None]
    return tf.where(steps < lengths, source, tf.where(steps == lengths, EOS_ID, PAD_ID))


def valid_ids(ids: Any, vocabulary_size: int, *, end_stops: bool = True) -> Any:
    """Replaces ids from a client, int32 `(B, S)`, that a tokenizer would not produce.

    Begin tokens and ids outside the vocabulary become the unknown token. Everything after the first
    padding becomes padding. With `end_stops`, the end token and everything after it also become
    padding; otherwise the end token becomes the unknown token.
    """
    stop = (ids == PAD_ID) | (ids == EOS_ID) if end_stops else ids == PAD_ID
    real = tf.cumsum(tf.cast(stop, tf.int32), axis=1) == 0
    known = (ids == UNK_ID) | ((ids > EOS_ID) & (ids < vocabulary_size))
    return tf.where(real, tf.where(known, ids, UNK_ID), PAD_ID)
