"""The corpus of token ids on disk, and batches built from it."""

from keras_seq.data.balance import balanced_items, balanced_rows, balanced_sizes
from keras_seq.data.contiguous import ContiguousStream, contiguous_batches
from keras_seq.data.corpus import TokenCorpus
from keras_seq.data.packing import pack
from keras_seq.data.sampled_pairs import PairSampling
from keras_seq.data.sequential import sequential_batches
from keras_seq.data.sounds import (
    SAMPLE_IDS,
    SoundReader,
    find_sound,
    read_sound,
    sample_ids,
    samples_of,
    sound_info,
    write_sound,
)
from keras_seq.data.spans import Span, parse_spans
from keras_seq.data.stream import BatchStream
from keras_seq.data.unseen_tokens import UnseenTokens
from keras_seq.data.writing import CorpusCounts, TokenPair, write_corpus

__all__ = [
    "SAMPLE_IDS",
    "BatchStream",
    "ContiguousStream",
    "CorpusCounts",
    "PairSampling",
    "SoundReader",
    "Span",
    "TokenCorpus",
    "TokenPair",
    "UnseenTokens",
    "balanced_items",
    "balanced_rows",
    "balanced_sizes",
    "contiguous_batches",
    "find_sound",
    "pack",
    "parse_spans",
    "read_sound",
    "sample_ids",
    "samples_of",
    "sequential_batches",
    "sound_info",
    "write_corpus",
    "write_sound",
]
