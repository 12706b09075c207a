"""HTML pages of attention weights and of beam search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from keras_seq.analysis.attention import Attention
from keras_seq.analysis.explanation import Explainer
from keras_seq.analysis.pages import Page, make_page
from keras_seq.settings import SearchSettings


class AttendedLine(NamedTuple):
    """A line with its number, its translation, and the weights of all layers and heads."""

    number: int
    source: str
    text: str
    attention: Attention


def attention_page(
    lines: Sequence[AttendedLine], explain: Explainer, run: str, omitted: int = 0
) -> Page:
    """Returns a page of the attention weights of lines.

    `run` is the name of the run, and `omitted` the number of further lines, which are not shown.
    """
    layers, heads = lines[0].attention.weights.shape[:2]
    data = {
        "run": run,
        "layers": layers,
        "heads": heads,
        "layer": explain.layer % layers,
        "head": explain.head,
        "left": omitted,
        "lines": [_attended(line, explain) for line in lines],
    }
    return make_page("attention", data)


def _attended(line: AttendedLine, explain: Explainer) -> dict[str, Any]:
    source_tokens, tokens = explain.pieces(line.attention)
    thousandths = (line.attention.weights * 1000).round().astype(int)
    return {
        "number": line.number,
        "source": line.source,
        "text": line.text,
        "source_tokens": source_tokens,
        "tokens": tokens,
        "weights": thousandths.reshape(*thousandths.shape[:2], -1).tolist(),
    }


def beam_page(
    trees: Sequence[dict[str, Any]], settings: SearchSettings, run: str, omitted: int = 0
) -> Page:
    """Returns a page of trees of `BeamView`, each with the `number` of its line."""
    data = {
        "run": run,
        "beam_size": settings.beam_size,
        "normalization": settings.length_normalization,
        "alpha": settings.alpha,
        "coverage": settings.coverage_penalty > 0,
        "patience": settings.patience,
        "left": omitted,
        "lines": list(trees),
    }
    return make_page("beam", data)
