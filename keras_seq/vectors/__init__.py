"""Word vectors: training, files, nearest neighbors and analogies.

Training needs Numba: `pip install 'keras-seq[vectors]'`. Everything else needs only numpy.
The public names load at their first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_NAMES = {
    "VectorSettings": "keras_seq.vectors.settings",
    "WordVectors": "keras_seq.vectors.word_vectors",
    "cosine": "keras_seq.vectors.word_vectors",
    "train_vectors": "keras_seq.vectors.training",
    "vector_map": "keras_seq.vectors.mapping",
}

__all__ = ["VectorSettings", "WordVectors", "cosine", "train_vectors", "vector_map"]

if TYPE_CHECKING:
    from keras_seq.vectors.mapping import vector_map
    from keras_seq.vectors.settings import VectorSettings
    from keras_seq.vectors.training import train_vectors
    from keras_seq.vectors.word_vectors import WordVectors, cosine


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'keras_seq.vectors' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
