"""Search over any model with an encoder and a decoder step."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keras_seq.search.beam import beam_search as beam_search
    from keras_seq.search.beam_record import SearchRecord as SearchRecord
    from keras_seq.search.config import SearchConfig as SearchConfig
    from keras_seq.search.ctc_decoding import Labelings as Labelings
    from keras_seq.search.ctc_decoding import ctc_beam_search as ctc_beam_search
    from keras_seq.search.ctc_decoding import ctc_greedy_search as ctc_greedy_search
    from keras_seq.search.generating import generate as generate
    from keras_seq.search.hypotheses import SearchResult as SearchResult
    from keras_seq.search.sampling import sample as sample
    from keras_seq.search.scores import coverage_score as coverage_score
    from keras_seq.search.scores import forced_scores as forced_scores
    from keras_seq.search.scores import length_penalty as length_penalty

_MODULES = {
    "Labelings": "ctc_decoding",
    "SearchConfig": "config",
    "SearchRecord": "beam_record",
    "SearchResult": "hypotheses",
    "beam_search": "beam",
    "coverage_score": "scores",
    "ctc_beam_search": "ctc_decoding",
    "ctc_greedy_search": "ctc_decoding",
    "forced_scores": "scores",
    "generate": "generating",
    "length_penalty": "scores",
    "sample": "sampling",
}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"keras_seq.search.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'keras_seq.search' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
