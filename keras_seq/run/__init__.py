"""The run directory: its files, its checkpoints, and tests for an existing run."""

from keras_seq.run.checks import check_new, is_run
from keras_seq.run.directory import Run, Shapes
from keras_seq.run.layout import lock_directory
from keras_seq.run.vocabularies import Vocabulary, with_languages_of

__all__ = [
    "Run",
    "Shapes",
    "Vocabulary",
    "check_new",
    "is_run",
    "lock_directory",
    "with_languages_of",
]
