"""Text to a run that is ready to train, or to go on; all of it before Keras is imported."""

from keras_seq.preparation.files import PairCounts, count_pairs
from keras_seq.preparation.preparing import prepare_run
from keras_seq.preparation.resolving import resolve_settings
from keras_seq.preparation.resume import (
    Resume,
    check_directory,
    known_counts,
    known_initial_checkpoint,
    known_preset,
    open_or_prepare,
)
from keras_seq.preparation.warm_start import base_settings, kept_vectors

__all__ = [
    "PairCounts",
    "Resume",
    "base_settings",
    "check_directory",
    "count_pairs",
    "kept_vectors",
    "known_counts",
    "known_preset",
    "known_initial_checkpoint",
    "open_or_prepare",
    "prepare_run",
    "resolve_settings",
]
