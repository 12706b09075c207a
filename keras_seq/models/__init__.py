"""Functional Keras models of sequences: seq2seq, language models, classifiers, taggers, speech."""

from keras_seq.models.attention_recognizer import AttentionRecognizer
from keras_seq.models.backbone_classifier import BackboneClassifier
from keras_seq.models.backbone_seq2seq import BackboneSeq2Seq
from keras_seq.models.bag_classifier import BagClassifier
from keras_seq.models.conditioned_generator import ConditionedGenerator
from keras_seq.models.ctc_recognizer import CTCRecognizer
from keras_seq.models.ensemble import Ensemble
from keras_seq.models.ensemble_seq2seq import EnsembleSeq2Seq
from keras_seq.models.recurrent import RecurrentSeq2Seq
from keras_seq.models.recurrent_classifier import RecurrentClassifier
from keras_seq.models.recurrent_language_model import RecurrentLanguageModel
from keras_seq.models.recurrent_tagger import RecurrentTagger
from keras_seq.models.sequence_vae import SequenceVAE
from keras_seq.models.transformer import Transformer
from keras_seq.models.transformer_classifier import TransformerClassifier
from keras_seq.models.transformer_language_model import TransformerLanguageModel
from keras_seq.models.transformer_tagger import TransformerTagger
from keras_seq.models.trigger_word_detector import TriggerWordDetector

__all__ = [
    "AttentionRecognizer",
    "BackboneClassifier",
    "BackboneSeq2Seq",
    "BagClassifier",
    "CTCRecognizer",
    "ConditionedGenerator",
    "Ensemble",
    "EnsembleSeq2Seq",
    "RecurrentClassifier",
    "RecurrentLanguageModel",
    "RecurrentSeq2Seq",
    "RecurrentTagger",
    "SequenceVAE",
    "Transformer",
    "TransformerClassifier",
    "TransformerLanguageModel",
    "TransformerTagger",
    "TriggerWordDetector",
]
