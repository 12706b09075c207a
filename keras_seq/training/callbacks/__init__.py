"""Keras callbacks for sequence models, one a file; each works in any `fit`."""

from keras_seq.training.callbacks.checkpoint import Checkpoint
from keras_seq.training.callbacks.nan_guard import NanGuard
from keras_seq.training.callbacks.progress import Progress
from keras_seq.training.callbacks.stop_at_limit import StopAtLimit
from keras_seq.training.callbacks.stop_on_signal import StopOnSignal
from keras_seq.training.callbacks.validation import Validation

__all__ = ["Checkpoint", "NanGuard", "Progress", "StopAtLimit", "StopOnSignal", "Validation"]
