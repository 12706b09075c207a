"""Keras metrics for sequences, summed over all batches of an epoch, without padding."""

from keras_seq.metrics.bleu import BLEU
from keras_seq.metrics.chrf import ChrF
from keras_seq.metrics.edit_distance import EditDistance
from keras_seq.metrics.entity_f1 import EntityF1
from keras_seq.metrics.exact_match import ExactMatch
from keras_seq.metrics.masked_token_accuracy import MaskedTokenAccuracy
from keras_seq.metrics.perplexity import Perplexity

__all__ = [
    "BLEU",
    "ChrF",
    "EditDistance",
    "EntityF1",
    "ExactMatch",
    "MaskedTokenAccuracy",
    "Perplexity",
]
