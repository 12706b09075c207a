"""Layers that Keras 3 lacks: tensors in, tensors out."""

from keras_seq.layers.ancestry import ancestry_bias, record_step
from keras_seq.layers.attention_cell import AttentionCell
from keras_seq.layers.attention_decoder import AttentionDecoder
from keras_seq.layers.bahdanau_attention import BahdanauAttention
from keras_seq.layers.bahdanau_monotonic_attention import BahdanauMonotonicAttention
from keras_seq.layers.decoder_block import TransformerDecoderBlock
from keras_seq.layers.encoder_block import TransformerEncoderBlock
from keras_seq.layers.feed_forward import FeedForward
from keras_seq.layers.learned_position import LearnedPosition
from keras_seq.layers.linear_biases import LinearBiases
from keras_seq.layers.location_sensitive_attention import LocationSensitiveAttention
from keras_seq.layers.luong_attention import LuongAttention
from keras_seq.layers.luong_monotonic_attention import LuongMonotonicAttention
from keras_seq.layers.monotonic import monotonic_attention
from keras_seq.layers.multi_head_cross_attention import MultiHeadCrossAttention
from keras_seq.layers.multi_head_self_attention import MultiHeadSelfAttention
from keras_seq.layers.relative_position import RelativePosition
from keras_seq.layers.rotary_position import RotaryPosition
from keras_seq.layers.sampled_decoder import SampledDecoder
from keras_seq.layers.samplers import (
    CategoricalSampler,
    GreedySampler,
    ScheduledEmbeddingSampler,
    ScheduledOutputSampler,
    TrainingSampler,
)
from keras_seq.layers.sinusoidal_position import SinusoidalPosition
from keras_seq.layers.token_embedding import TokenEmbedding

__all__ = [
    "AttentionCell",
    "AttentionDecoder",
    "BahdanauAttention",
    "BahdanauMonotonicAttention",
    "CategoricalSampler",
    "FeedForward",
    "GreedySampler",
    "LearnedPosition",
    "LinearBiases",
    "LocationSensitiveAttention",
    "LuongAttention",
    "LuongMonotonicAttention",
    "MultiHeadCrossAttention",
    "MultiHeadSelfAttention",
    "RelativePosition",
    "RotaryPosition",
    "SampledDecoder",
    "ScheduledEmbeddingSampler",
    "ScheduledOutputSampler",
    "SinusoidalPosition",
    "TokenEmbedding",
    "TrainingSampler",
    "TransformerDecoderBlock",
    "TransformerEncoderBlock",
    "ancestry_bias",
    "monotonic_attention",
    "record_step",
]
