"""The run directory: all that a training needs and leaves, and whether there is one."""

from keras_seq.run.checks import check_new, is_run
from keras_seq.run.directory import Run, Shapes
from keras_seq.run.read_only import ReadOnlyRun
from keras_seq.run.vocabularies import Vocabulary

__all__ = ["ReadOnlyRun", "Run", "Shapes", "Vocabulary", "check_new", "is_run"]
