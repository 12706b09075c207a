"""The TensorFlow module that becomes a SavedModel: weights, and functions over them."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import tensorflow as tf

from keras_seq.data.ids import EOS, PAD, UNK

# Shape letters: B batch, S steps.

# Sources are padded to a multiple of this. TensorFlow keeps a prepared program for each shape that
# it has seen, so a server's memory would grow with every new length of a source.
_WIDTH = 8


class SignatureModule(tf.Module):
    """Variables of a model, and the functions that a server offers over them.

    The model itself must not be an attribute: Keras objects restore their variables in Python,
    but not in the session of a model server.

    Args:
        model: A model of `keras_seq.models` or an `Ensemble`, on the TensorFlow backend.
        functions: Signatures by name. One of them is `ids`, which has no operations on text.
    """

    def __init__(self, model: Any, functions: Mapping[str, Any]) -> None:
        super().__init__()
        self.weights = [weight.value for weight in model.weights]
        # Not as attributes, because functions that are attributes are saved a second time.
        self._functions = SimpleNamespace(**functions)

    def signatures(self, *, text: bool = True) -> dict[str, Any]:
        """The functions that a server offers, by name.

        Args:
            text: Whether the server has the operations that turn text into ids. A server without
                them loads no graph that contains one.
        """
        if not text:
            return {name: self._functions.ids for name in ("serving_default", "ids")}
        return dict(vars(self._functions))


def signature(**inputs: tuple[int, Any]) -> Any:
    """Decorator that makes a function into a signature.

    Args:
        **inputs: Rank and dtype of each input; every dimension is unknown.
    """
    specs = [
        tf.TensorSpec([None] * rank, dtype, name=name) for name, (rank, dtype) in inputs.items()
    ]
    return tf.function(input_signature=specs, autograph=False)


def room_to_width(rows: Any) -> Any:
    """Steps to add to rows of ids: at least one, up to a multiple of a fixed width."""
    return _WIDTH - tf.shape(rows)[1] % _WIDTH


def source_lengths(source: Any) -> Any:
    """Number of tokens of each row, without padding and end tokens."""
    real = (source != PAD) & (source != EOS)
    return tf.reduce_sum(tf.cast(real, tf.int32), axis=1)


def ended(source: Any) -> Any:
    """Puts the end token after the last token of each row, whether there was one or not."""
    source = tf.pad(source, [[0, 0], [0, room_to_width(source)]])  # (B, S + room)
    steps = tf.range(tf.shape(source)[1])
    lengths = source_lengths(source)[:, None]
    return tf.where(steps < lengths, source, tf.where(steps == lengths, EOS, PAD))


def known_ids(ids: Any, vocabulary_size: int) -> Any:
    """Ids as a tokenizer gives them, whatever a client sends: without begin and end.

    Args:
        ids: Int32 `(B, S)`; everything after padding becomes padding.
        vocabulary_size: Every id is below it.
    """
    real = tf.cumsum(tf.cast((ids == PAD) | (ids == EOS), tf.int32), axis=1) == 0
    known = (ids == UNK) | ((ids > EOS) & (ids < vocabulary_size))
    return tf.where(real, tf.where(known, ids, UNK), PAD)
