"""Removal of pairs that harm a training, such as misaligned ones. Without Keras."""

from keras_seq.cleaning.character_model import CharacterModel
from keras_seq.cleaning.cleaner import Cleaner
from keras_seq.cleaning.corpus_statistics import CorpusStatistics, is_copy
from keras_seq.cleaning.foreign_text import ForeignTexts, foreign_texts
from keras_seq.cleaning.rules import RULES

__all__ = [
    "RULES",
    "CharacterModel",
    "Cleaner",
    "CorpusStatistics",
    "ForeignTexts",
    "foreign_texts",
    "is_copy",
]
