"""Search over any model with an encoder and a decoder step."""

from keras_seq.search.beam_search import SearchResult, beam_search
from keras_seq.search.forced_decoding import forced_scores
from keras_seq.search.length_normalization import length_penalty

__all__ = ["SearchResult", "beam_search", "forced_scores", "length_penalty"]
