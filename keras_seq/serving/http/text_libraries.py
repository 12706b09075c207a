"""Paths of tensorflow-text's libraries, for loading the libraries without importing Keras."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from keras_seq.text import InputError

# Paths inside the package. Stock TensorFlow Serving contains the operations of these libraries.
SENTENCEPIECE = "python/ops/_sentencepiece_tokenizer.so"
NORMALIZING = "python/ops/_normalize_ops.so"
WORD_PIECES = "python/ops/_fast_wordpiece_tokenizer.so"
TEXT_LIBRARIES = (SENTENCEPIECE, NORMALIZING, WORD_PIECES)


def text_library(name: str) -> str:
    """Returns the path of a library, or raises InputError if tensorflow-text is not installed."""
    spec = importlib.util.find_spec("tensorflow_text")
    path = Path(spec.origin).parent / name if spec and spec.origin else None
    if path is None or not path.exists():
        raise InputError("tensorflow-text is needed: python -m pip install tensorflow-text")
    return str(path)
