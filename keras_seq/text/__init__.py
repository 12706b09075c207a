"""Text on disk, and text to ids and back: no Keras, no TensorFlow."""

from .errors import InputError
from .reading import check_readable, count_lines, read_lines, read_pairs, read_tsv
from .tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer

__all__ = [
    "BOS_ID",
    "EOS_ID",
    "PAD_ID",
    "UNK_ID",
    "InputError",
    "Tokenizer",
    "check_readable",
    "count_lines",
    "read_lines",
    "read_pairs",
    "read_tsv",
]
