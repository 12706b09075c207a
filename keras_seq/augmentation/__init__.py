"""More training pairs from text in one language."""

from keras_seq.augmentation.synthetic_pairs import SyntheticCounts, make_synthetic_pairs

__all__ = ["SyntheticCounts", "make_synthetic_pairs"]
