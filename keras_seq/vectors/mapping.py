"""Two-dimensional maps of word vectors."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_seq.storage import named_errors
from keras_seq.text import InputError
from keras_seq.text.reading import Path
from keras_seq.vectors.word_vectors import WordVectors

_NEIGHBORS = 8


def vector_map(
    vectors: WordVectors, words: Sequence[str], *, perplexity: float | None = None, seed: int = 0
) -> np.ndarray:
    """Computes a two-dimensional map of words by t-SNE on cosine distances.

    Args:
        vectors: `WordVectors`.
        words: The words of the map, at least three.
        perplexity: Effective number of neighbors of a word, below the number of words; if None,
            30 or a third of the words, whichever is smaller.
        seed: Random seed.

    Returns:
        Float32 `(len(words), 2)`.

    Raises:
        InputError: If a word has no vector, there are too few words, or scikit-learn is missing.

    Reference:
        Van der Maaten and Hinton, "Visualizing Data using t-SNE", JMLR 2008
    """
    require("sklearn", "scikit-learn")
    matrix = np.stack([vectors[word] for word in words]) if words else np.zeros((0, 1))
    if len(words) < 3:
        raise InputError(f"{vectors.name}: {len(words)} words, expected 3 at least for a map")
    if perplexity is None:
        perplexity = min(30.0, (len(words) - 1) / 3)
    if not 0 < perplexity < len(words):
        expected = f"above 0 and below the {len(words):,} words"
        raise InputError(f"perplexity: received {perplexity:g}, expected {expected}")
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    method = TSNE(
        n_components=2,
        perplexity=perplexity,
        metric="cosine",
        init="random",
        random_state=np.random.RandomState(seed % 2**32),
        n_jobs=1,
    )
    # With several threads, t-SNE synchronizes often and is 15 times slower on a busy machine.
    with threadpool_limits(1):
        return np.asarray(method.fit_transform(matrix), np.float32)


def map_page(vectors: WordVectors, words: Sequence[str], places: np.ndarray) -> dict[str, Any]:
    """Builds the data of the HTML page `vectors`; see `keras_seq.analysis.pages.make_page`."""
    neighbors = [
        [[near, round(cosine, 4)] for near, cosine in vectors.nearest(word, _NEIGHBORS)]
        for word in words
    ]
    return {
        "name": vectors.name.replace("\\", "/").rsplit("/", 1)[-1],
        "vectors": len(vectors),
        "width": int(vectors.matrix.shape[1]),
        "words": [
            {"word": word, "x": float(x), "y": float(y), "nearest": near}
            for word, (x, y), near in zip(words, places.tolist(), neighbors, strict=True)
        ],
    }


def save_map_image(path: Path, title: str, words: Sequence[str], places: np.ndarray) -> None:
    """Writes a map as a PNG file, each word next to its point."""
    require("matplotlib", "matplotlib")
    # pyplot would need a display and keep every figure in memory.
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with warnings.catch_warnings(), rc_context({"text.parse_math": False}):
        # A character without a glyph is drawn as a box.
        warnings.filterwarnings("ignore", message="Glyph")
        figure = Figure(figsize=(12, 12), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.scatter(places[:, 0], places[:, 1], s=6, color="#1f5fbf")
        for word, (x, y) in zip(words, places, strict=True):
            axes.annotate(word, (x, y), xytext=(3, 1), textcoords="offset points", fontsize=7)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_title(title, loc="left")
        with named_errors(path):
            figure.savefig(path, format="png", dpi=120)


def require(module: str, package: str) -> None:
    """Raises InputError if a package of the extra `plot` is missing. Imports nothing."""
    try:
        missing = importlib.util.find_spec(module) is None
    except ValueError:
        missing = True
    if missing:
        raise InputError(
            f"a map of vectors needs {package}: python -m pip install 'keras-seq[plot]'"
        )
