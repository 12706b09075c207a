"""Functional Keras models with the encoder / decoder-step contract."""

from keras_seq.models.transformer import Transformer

__all__ = ["Transformer"]
