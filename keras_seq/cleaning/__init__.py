"""Removal of pairs that harm a training, such as misaligned ones. Without Keras."""

from keras_seq.cleaning.cleaner import Cleaner
from keras_seq.cleaning.rules import RULES

__all__ = ["RULES", "Cleaner"]
