"""Checkpoints on disk: tensor files, checkpoint directories, and the store of a run."""

from keras_seq.storage.checkpoints.directory import Checkpoint
from keras_seq.storage.checkpoints.store import CheckpointStore, NotFiniteError

__all__ = ["Checkpoint", "CheckpointStore", "NotFiniteError"]
