"""Sequence layers that Keras 3 does not have."""

from keras_seq.layers.attention.attention_cell import AttentionCell
from keras_seq.layers.attention.attention_decoder import AttentionDecoder
from keras_seq.layers.attention.bahdanau_attention import BahdanauAttention
from keras_seq.layers.attention.bahdanau_monotonic_attention import BahdanauMonotonicAttention
from keras_seq.layers.attention.beam_cache import beam_cache_mask, update_ancestors
from keras_seq.layers.attention.hard_monotonic_attention import HardMonotonicAttention
from keras_seq.layers.attention.location_sensitive_attention import LocationSensitiveAttention
from keras_seq.layers.attention.luong_attention import LuongAttention
from keras_seq.layers.attention.luong_monotonic_attention import LuongMonotonicAttention
from keras_seq.layers.attention.monotonic import monotonic_attention
from keras_seq.layers.attention.multi_head_cross_attention import MultiHeadCrossAttention
from keras_seq.layers.attention.multi_head_self_attention import MultiHeadSelfAttention
from keras_seq.layers.attention.pointer_generator import PointerGenerator
from keras_seq.layers.cells.dropout_cell import DropoutCell
from keras_seq.layers.cells.esn_cell import ESNCell
from keras_seq.layers.cells.gru_cell import GRUCell
from keras_seq.layers.cells.layer_norm_lstm_cell import LayerNormLSTMCell
from keras_seq.layers.cells.layer_norm_simple_rnn_cell import LayerNormSimpleRNNCell
from keras_seq.layers.cells.lstm_cell import LSTMCell
from keras_seq.layers.cells.nas_cell import NASCell
from keras_seq.layers.cells.peephole_lstm_cell import PeepholeLSTMCell
from keras_seq.layers.cells.residual_cell import ResidualCell
from keras_seq.layers.cells.rnn import RNN
from keras_seq.layers.cells.stacks import bidirectional, stacked
from keras_seq.layers.cells.zoneout_cell import ZoneoutCell
from keras_seq.layers.conditional_random_field import ConditionalRandomField
from keras_seq.layers.convolutional_encoder import ConvolutionalEncoder
from keras_seq.layers.embedding.character_convolution import CharacterConvolution
from keras_seq.layers.embedding.hashed_ngram_embedding import HashedNgramEmbedding
from keras_seq.layers.embedding.hashed_trigram_embedding import HashedTrigramEmbedding
from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.layers.embedding.word_form_embedding import WordFormEmbedding
from keras_seq.layers.masked_pooling import MaskedPooling
from keras_seq.layers.positions.learned_position import LearnedPosition
from keras_seq.layers.positions.linear_biases import LinearBiases
from keras_seq.layers.positions.relative_position import RelativePosition
from keras_seq.layers.positions.rotary_position import RotaryPosition
from keras_seq.layers.positions.sinusoidal_position import SinusoidalPosition
from keras_seq.layers.reparameterized_sampling import ReparameterizedSampling
from keras_seq.layers.reversed_sequence import ReversedSequence
from keras_seq.layers.sampling.sampled_decoder import SampledDecoder
from keras_seq.layers.sampling.samplers import (
    CategoricalSampler,
    GreedySampler,
    ScheduledEmbeddingSampler,
    ScheduledOutputSampler,
    TrainingSampler,
)
from keras_seq.layers.speech.ctc_logits import CTCLogits
from keras_seq.layers.speech.log_mel_spectrogram import LogMelSpectrogram
from keras_seq.layers.speech.random_noise import RandomNoise
from keras_seq.layers.speech.random_speed import RandomSpeed
from keras_seq.layers.speech.spec_augment import SpecAugment
from keras_seq.layers.speech.strided_convolution import StridedConvolution
from keras_seq.layers.transformer.decoder_block import TransformerDecoderBlock
from keras_seq.layers.transformer.encoder_block import TransformerEncoderBlock
from keras_seq.layers.transformer.feed_forward import FeedForward

__all__ = [
    "AttentionCell",
    "AttentionDecoder",
    "BahdanauAttention",
    "BahdanauMonotonicAttention",
    "CTCLogits",
    "CategoricalSampler",
    "CharacterConvolution",
    "ConditionalRandomField",
    "ConvolutionalEncoder",
    "DropoutCell",
    "ESNCell",
    "FeedForward",
    "GRUCell",
    "GreedySampler",
    "HardMonotonicAttention",
    "HashedNgramEmbedding",
    "HashedTrigramEmbedding",
    "LSTMCell",
    "LayerNormLSTMCell",
    "LayerNormSimpleRNNCell",
    "LearnedPosition",
    "LinearBiases",
    "LocationSensitiveAttention",
    "LogMelSpectrogram",
    "LuongAttention",
    "LuongMonotonicAttention",
    "MaskedPooling",
    "MultiHeadCrossAttention",
    "MultiHeadSelfAttention",
    "NASCell",
    "PeepholeLSTMCell",
    "PointerGenerator",
    "RNN",
    "RandomNoise",
    "RandomSpeed",
    "RelativePosition",
    "ReparameterizedSampling",
    "ResidualCell",
    "ReversedSequence",
    "RotaryPosition",
    "SampledDecoder",
    "ScheduledEmbeddingSampler",
    "ScheduledOutputSampler",
    "SinusoidalPosition",
    "SpecAugment",
    "StridedConvolution",
    "TokenEmbedding",
    "TrainingSampler",
    "TransformerDecoderBlock",
    "TransformerEncoderBlock",
    "ZoneoutCell",
    "beam_cache_mask",
    "bidirectional",
    "monotonic_attention",
    "update_ancestors",
    "stacked",
    "WordFormEmbedding",
]
