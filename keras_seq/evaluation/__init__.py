"""Evaluation of a run on a test set: which metrics, which files, and the values.

Importing the package imports neither Keras nor a backend, so wrong options and files are
reported at once. `evaluation.evaluating` loads the model.
"""

from keras_seq.evaluation.files import EvaluationFiles
from keras_seq.evaluation.metrics import check_options, evaluation_metrics
from keras_seq.evaluation.values import Evaluation, MetricValue

__all__ = [
    "Evaluation",
    "EvaluationFiles",
    "MetricValue",
    "check_options",
    "evaluation_metrics",
]
