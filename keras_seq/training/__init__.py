"""Training: the loop around `fit`, the optimizer, checkpoints and results."""

from keras_seq.training.errors import DivergedError, OutOfMemoryError, TrainingError
from keras_seq.training.evaluation import make_evaluation
from keras_seq.training.event_log import EventLog
from keras_seq.training.experiment_loggers import experiment_loggers
from keras_seq.training.once_per_update import OncePerUpdate
from keras_seq.training.plan import plan
from keras_seq.training.result import TrainingResult
from keras_seq.training.scheduled_sampling import ScheduledSampling
from keras_seq.training.skipping_adam import SkippingAdam
from keras_seq.training.trainer import train, train_as_worker
from keras_seq.training.vae_training_model import DivergenceLoss, VAETrainingModel
from keras_seq.training.warm_start import load_word_vectors

__all__ = [
    "DivergedError",
    "DivergenceLoss",
    "EventLog",
    "OncePerUpdate",
    "OutOfMemoryError",
    "ScheduledSampling",
    "SkippingAdam",
    "TrainingError",
    "TrainingResult",
    "VAETrainingModel",
    "train_as_worker",
    "load_word_vectors",
    "experiment_loggers",
    "make_evaluation",
    "plan",
    "train",
]
