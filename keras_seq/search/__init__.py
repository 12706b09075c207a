"""Search over any model with an encoder and a decoder step."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keras_seq.search.beam import beam_search
    from keras_seq.search.beam_record import SearchRecord
    from keras_seq.search.config import SearchConfig
    from keras_seq.search.coverage import coverage_score
    from keras_seq.search.ctc_decoding import Labelings, ctc_beam_search, ctc_greedy_search
    from keras_seq.search.forced_decoding import forced_scores
    from keras_seq.search.hypotheses import SearchResult
    from keras_seq.search.length_normalization import length_penalty
    from keras_seq.search.sampling import sample

_MODULES = {
    "Labelings": "ctc_decoding",
    "SearchConfig": "config",
    "SearchRecord": "beam_record",
    "SearchResult": "hypotheses",
    "beam_search": "beam",
    "coverage_score": "coverage",
    "ctc_beam_search": "ctc_decoding",
    "ctc_greedy_search": "ctc_decoding",
    "forced_scores": "forced_decoding",
    "length_penalty": "length_normalization",
    "sample": "sampling",
}

__all__ = [
    "Labelings",
    "SearchConfig",
    "SearchRecord",
    "SearchResult",
    "beam_search",
    "coverage_score",
    "ctc_beam_search",
    "ctc_greedy_search",
    "forced_scores",
    "length_penalty",
    "sample",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"keras_seq.search.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'keras_seq.search' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
