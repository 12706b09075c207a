"""Checkpoints on disk: named arrays in files, a directory of these, and the store of a run."""

from keras_seq.storage.checkpoints.directory import Checkpoint
from keras_seq.storage.checkpoints.store import CheckpointStore, NotFiniteError

__all__ = ["Checkpoint", "CheckpointStore", "NotFiniteError"]
