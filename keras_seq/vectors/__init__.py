"""Word vectors: training, files, nearest neighbors and analogies.

Training needs Numba: `python -m pip install 'keras-seq[vectors]'`. Everything else needs only
numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keras_seq.vectors.mapping import vector_map
from keras_seq.vectors.settings import VectorSettings
from keras_seq.vectors.word_vectors import WordVectors, cosine

if TYPE_CHECKING:
    from keras_seq.vectors.training import train_vectors

__all__ = ["VectorSettings", "WordVectors", "cosine", "train_vectors", "vector_map"]


def __getattr__(name: str) -> Any:
    if name != "train_vectors":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Imported at its first use, because the module needs Numba.
    from keras_seq.vectors.training import train_vectors

    return train_vectors
