"""Evaluation of a run on a test set. Importing this package does not import Keras."""

from keras_seq.evaluation.files import EvaluationFiles
from keras_seq.evaluation.metrics import check_options, evaluation_metrics
from keras_seq.evaluation.values import Evaluation, MetricValue

__all__ = ["Evaluation", "EvaluationFiles", "MetricValue", "check_options", "evaluation_metrics"]
