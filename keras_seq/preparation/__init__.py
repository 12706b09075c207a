"""Prepares text for training, or opens a run to resume. Does not import Keras."""

from keras_seq.preparation.files import PairCounts, count_pairs
from keras_seq.preparation.preparing import prepare_run
from keras_seq.preparation.resolving import resolve_settings
from keras_seq.preparation.resume import Resume, check_directory, find_run, open_or_prepare
from keras_seq.preparation.warm_start import base_settings

__all__ = [
    "PairCounts",
    "Resume",
    "base_settings",
    "check_directory",
    "count_pairs",
    "find_run",
    "open_or_prepare",
    "prepare_run",
    "resolve_settings",
]
