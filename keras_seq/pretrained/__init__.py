"""Small trained models, by name."""

from keras_seq.pretrained.loading import load, names

__all__ = ["load", "names"]
