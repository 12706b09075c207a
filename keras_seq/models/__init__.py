"""Functional Keras models of sequences: seq2seq, language models, classifiers, taggers, speech."""

from keras_seq.models.attention_recognizer import AttentionRecognizer
from keras_seq.models.backbone_seq2seq import BackboneSeq2Seq
from keras_seq.models.backbone_text_encoder import BackboneTextEncoder
from keras_seq.models.bag_text_encoder import BagTextEncoder
from keras_seq.models.conditioned_generator import ConditionedGenerator
from keras_seq.models.convolutional_text_encoder import ConvolutionalTextEncoder
from keras_seq.models.ctc_recognizer import CTCRecognizer
from keras_seq.models.ensemble import Ensemble
from keras_seq.models.ensemble_classifier import EnsembleClassifier
from keras_seq.models.ensemble_seq2seq import EnsembleSeq2Seq
from keras_seq.models.recurrent import RecurrentSeq2Seq
from keras_seq.models.recurrent_language_model import RecurrentLanguageModel
from keras_seq.models.recurrent_text_encoder import RecurrentTextEncoder
from keras_seq.models.sequence_vae import SequenceVAE
from keras_seq.models.text_classifier import TextClassifier
from keras_seq.models.text_tagger import TextTagger
from keras_seq.models.transformer import Transformer
from keras_seq.models.transformer_language_model import TransformerLanguageModel
from keras_seq.models.transformer_text_encoder import TransformerTextEncoder
from keras_seq.models.trigger_word_detector import TriggerWordDetector
from keras_seq.models.uncached_seq2seq import UncachedSeq2Seq

__all__ = [
    "AttentionRecognizer",
    "BackboneSeq2Seq",
    "BackboneTextEncoder",
    "BagTextEncoder",
    "CTCRecognizer",
    "ConditionedGenerator",
    "ConvolutionalTextEncoder",
    "Ensemble",
    "EnsembleClassifier",
    "EnsembleSeq2Seq",
    "RecurrentLanguageModel",
    "RecurrentSeq2Seq",
    "RecurrentTextEncoder",
    "SequenceVAE",
    "TextClassifier",
    "TextTagger",
    "Transformer",
    "TransformerLanguageModel",
    "TransformerTextEncoder",
    "TriggerWordDetector",
    "UncachedSeq2Seq",
]
