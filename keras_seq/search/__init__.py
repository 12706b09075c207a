"""Search over any model with an encoder and a decoder step."""

from keras_seq.search.beam_search import SearchRecord, beam_search
from keras_seq.search.coverage import coverage_score
from keras_seq.search.ctc_decoding import Labelings, ctc_beam_search, ctc_greedy_search
from keras_seq.search.forced_decoding import forced_scores
from keras_seq.search.hypotheses import SearchResult
from keras_seq.search.length_normalization import length_penalty
from keras_seq.search.sampling import sample

__all__ = [
    "Labelings",
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
