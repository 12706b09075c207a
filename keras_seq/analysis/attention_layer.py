"""Which of a model's attentions is worth looking at; imports no Keras."""

from __future__ import annotations

from keras_seq.settings import BackboneSeq2SeqSettings, Settings, TransformerSettings


def aligning_layer(settings: Settings) -> int:
    """The decoder layer that looks where a person would.

    The one that was taught (`training.guided_alignment`); else of a Transformer the one before
    the last, whose attention agrees best with word alignments.

    Args:
        settings: Those of a run.

    Reference:
        Garg et al., "Jointly Learning to Align and Translate with Transformer Models", 2019,
        section 3, https://arxiv.org/abs/1909.02074
    """
    layers, _ = attention_shape(settings)
    if settings.training.guided_alignment:
        return settings.training.guided_alignment_layer % layers
    # The first of several looks around.
    return max(layers - 2, min(layers - 1, 1))


def attention_shape(settings: Settings) -> tuple[int, int]:
    """How many layers of a run's model look at the source, and by how many heads."""
    model = settings.model
    if isinstance(model, TransformerSettings | BackboneSeq2SeqSettings):
        return model.num_decoder_layers, model.num_heads
    return 1, 1
