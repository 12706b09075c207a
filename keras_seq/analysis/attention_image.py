"""Saves attention as an image file; needs matplotlib."""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Sequence

import numpy as np

from keras_seq.storage import named_errors


def can_save_images() -> bool:
    """Returns True if matplotlib is installed, without importing it."""
    try:
        return importlib.util.find_spec("matplotlib") is not None
    except ValueError:
        return False


def save_attention_image(
    path: str | os.PathLike[str],
    title: str,
    source: Sequence[str],
    target: Sequence[str],
    weights: np.ndarray,
) -> None:
    """Writes attention weights `(T, S)` as a heat map in a PNG file."""
    # Avoids pyplot, which looks for a display and keeps every figure in memory.
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows, columns = weights.shape
    with warnings.catch_warnings(), rc_context({"text.parse_math": False}):
        # A character that no font has is drawn as a box.
        warnings.filterwarnings("ignore", message="Glyph")
        figure = Figure(figsize=(2.5 + 0.32 * columns, 2.0 + 0.3 * rows), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        image = axes.imshow(weights, vmin=0.0, vmax=1.0, cmap="Blues", aspect="auto")
        axes.set_xticks(range(columns), source, rotation=60, ha="left", rotation_mode="anchor")
        axes.set_yticks(range(rows), target)
        axes.xaxis.tick_top()
        axes.set_xticks(np.arange(columns) - 0.5, minor=True)
        axes.set_yticks(np.arange(rows) - 0.5, minor=True)
        axes.grid(which="minor", color="#e3e5e8", linewidth=0.5)
        axes.tick_params(which="both", length=0)
        axes.set_xlabel(title, loc="left", wrap=True)
        figure.colorbar(image, ax=axes, shrink=0.6)
        with named_errors(path):
            figure.savefig(path, format="png", dpi=120)
