"""Keras losses for sequences, labels and speech that ignore padding."""

from keras_seq.losses.ctc_loss import CTCLoss, ctc_needed_frames
from keras_seq.losses.label_losses import ChainLoss, LabelCrossEntropy
from keras_seq.losses.sequence_cross_entropy import SequenceCrossEntropy
from keras_seq.losses.sequence_loss import sequence_loss

__all__ = [
    "CTCLoss",
    "ChainLoss",
    "LabelCrossEntropy",
    "SequenceCrossEntropy",
    "ctc_needed_frames",
    "sequence_loss",
]
