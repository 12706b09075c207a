"""Training pairs from text in one language, by noise, with invented stems, or by a teacher."""

from keras_seq.augmentation.copies import copied_pairs
from keras_seq.augmentation.distillation import DistilledCounts, make_distilled_pairs
from keras_seq.augmentation.hallucination import hallucinated_pairs
from keras_seq.augmentation.noise import Noise, noised_pairs
from keras_seq.augmentation.pair_lines import HELD_OUT_ADVICE, check_output, pair_line
from keras_seq.augmentation.synthetic_pairs import SyntheticCounts, make_synthetic_pairs

__all__ = [
    "HELD_OUT_ADVICE",
    "DistilledCounts",
    "Noise",
    "SyntheticCounts",
    "check_output",
    "copied_pairs",
    "hallucinated_pairs",
    "make_distilled_pairs",
    "make_synthetic_pairs",
    "noised_pairs",
    "pair_line",
]
