"""Chooses the decoder layer whose attention aligns words best. Imports no Keras."""

from __future__ import annotations

from keras_seq.settings import BackboneSeq2SeqSettings, Settings, TransformerSettings


def alignment_layer(settings: Settings) -> int:
    """Returns the decoder layer whose attention agrees best with word alignments.

    This is the layer trained by `training.guided_alignment`, or else the second to last layer of a
    Transformer.

    Reference:
        Garg et al., "Jointly Learning to Align and Translate with Transformer Models", 2019,
        section 3, https://arxiv.org/abs/1909.02074
    """
    layers, _ = attention_shape(settings)
    if settings.training.guided_alignment:
        return settings.training.guided_alignment_layer % layers
    # Avoids the first of several layers, because the attention of the first is too diffuse.
    return max(layers - 2, min(layers - 1, 1))


def attention_shape(settings: Settings) -> tuple[int, int]:
    """Returns the numbers of layers and of heads with attention to the source."""
    model = settings.model
    if isinstance(model, TransformerSettings | BackboneSeq2SeqSettings):
        return model.num_decoder_layers, model.num_heads
    return 1, 1
