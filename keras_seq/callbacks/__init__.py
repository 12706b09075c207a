"""Keras callbacks for sequence models. They work with plain `keras.Model.fit`."""

from keras_seq.callbacks.attention_snapshots import AttentionSnapshots
from keras_seq.callbacks.average_weights import AverageWeights
from keras_seq.callbacks.checkpoint import Checkpoint
from keras_seq.callbacks.exact_checkpoint import ExactCheckpoint
from keras_seq.callbacks.experiment_logger import (
    ExperimentLogger,
    MLflowLogger,
    TableLogger,
    WandbLogger,
)
from keras_seq.callbacks.follow_schedule import FollowSchedule
from keras_seq.callbacks.nan_guard import NanGuard
from keras_seq.callbacks.progress import Progress
from keras_seq.callbacks.sample_translations import SampleTranslations
from keras_seq.callbacks.stop_at_limit import StopAtLimit
from keras_seq.callbacks.stop_at_time import StopAtTime
from keras_seq.callbacks.stop_on_signal import StopOnSignal
from keras_seq.callbacks.tensorboard import TensorBoard
from keras_seq.callbacks.validation import Validation

__all__ = [
    "AttentionSnapshots",
    "AverageWeights",
    "Checkpoint",
    "ExactCheckpoint",
    "ExperimentLogger",
    "FollowSchedule",
    "MLflowLogger",
    "NanGuard",
    "Progress",
    "SampleTranslations",
    "StopAtLimit",
    "StopAtTime",
    "StopOnSignal",
    "TableLogger",
    "TensorBoard",
    "Validation",
    "WandbLogger",
]
