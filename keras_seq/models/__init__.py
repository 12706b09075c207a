"""Functional Keras models with the encoder / decoder-step contract."""

from keras_seq.models.recurrent import RecurrentSeq2Seq
from keras_seq.models.transformer import Transformer

__all__ = ["RecurrentSeq2Seq", "Transformer"]
