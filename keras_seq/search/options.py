"""The options of a search, with their defaults, bounds and help texts. Imports no Keras."""

from dataclasses import dataclass, field
from typing import Any, Literal


def _option(default: Any, description: str, **bounds: float) -> Any:
    """A field with its help text and its bounds: `ge`, `gt` and `le`, as pydantic names them."""
    return field(default=default, metadata={"description": description, **bounds})


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options of beam search and sampling that do not depend on a vocabulary."""

    beam_size: int = _option(5, "Hypotheses kept at each step; 1: greedy search.", ge=1, le=1000)
    n_best: int = _option(
        1, "Outputs returned for each input; for a beam, at most its size.", ge=1, le=100_000
    )
    patience: float = _option(
        1.0, "Stop once this many times the beam size of hypotheses have ended.", ge=0.001, le=1000
    )
    length_normalization: Literal["average", "gnmt", "none"] = _option(
        "average", "How to compare scores of different lengths: average, gnmt or none."
    )
    alpha: float = _option(1.0, "Exponent of the length normalization.", ge=0, le=10)
    coverage_penalty: float = _option(
        0.0, "Weight of the penalty for source tokens that receive little attention.", ge=0, le=100
    )
    min_length: int = _option(1, "Minimum output length in tokens.", ge=1, le=10_000)
    min_length_ratio: float = _option(
        0.0, "Minimum output length relative to the source length.", ge=0, le=1000
    )
    max_length: int = _option(256, "Maximum output length in tokens.", ge=1, le=10_000)
    max_length_ratio: float = _option(
        2.0, "Maximum output length relative to the source length.", ge=0, le=1000
    )
    max_length_extra: int = _option(
        10, "Tokens added to the limit from the source length.", ge=1, le=10_000
    )
    no_repeat_ngram_size: int = _option(
        0, "Forbid repeating any n-gram of this size; 0: no limit.", ge=0, le=32
    )
    repetition_penalty: float = _option(
        1.0, "Divide the logits of tokens already in the output by this.", ge=0.01, le=100
    )
    temperature: float = _option(
        1.0, "sampling: divide the log-probabilities by this.", ge=0.001, le=1000
    )
    top_k: int = _option(0, "sampling: keep the k likeliest tokens; 0: all.", ge=0, le=1_000_000)
    top_p: float = _option(
        1.0, "sampling: keep the likeliest tokens up to this total probability.", gt=0, le=1
    )
    seed: Any = _option(0, "sampling: random seed.", ge=0, le=2**32 - 1)


@dataclass(frozen=True, kw_only=True)
class TextSearchOptions(SearchOptions):
    """Options of a search for text, as settings and commands take them."""

    method: Literal["beam", "sampling"] = _option(
        "beam", "beam: the likeliest outputs; sampling: random outputs."
    )
    rerank: Literal["none", "chrf", "bleu", "exact"] = _option(
        "none", "Metric whose expected value chooses the output: none, chrf, bleu or exact."
    )
    candidates: int = _option(
        16, "rerank: outputs to choose from: the beam size, or samples.", ge=2, le=1000
    )
    forbidden: str | list[str] | None = _option(
        None, "One or several words or phrases that the output must not contain."
    )
    prefix: str | None = _option(None, "Text that every output begins with.")
    batch_size: int = _option(32, "Lines decoded in one batch.", ge=1, le=100_000)


# Each key is an option that must not exceed the option in its value.
UPPER_LIMITS = {"min_length": "max_length", "min_length_ratio": "max_length_ratio"}
# The limit of hypotheses of a batch, times their length.
MAX_BATCH_TOKENS = 1 << 28
