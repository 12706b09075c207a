"""Marian model of transformers with the shape of `transformer-small`."""

import worker
from transformers import MarianConfig, MarianMTModel


def small(dropout: float) -> MarianMTModel:
    """Builds a model with new weights."""
    sides = ("encoder", "decoder")
    config = MarianConfig(
        vocab_size=worker.VOCABULARY,
        decoder_vocab_size=worker.VOCABULARY,
        d_model=256,
        **{f"{side}_layers": 3 for side in sides},
        **{f"{side}_attention_heads": 4 for side in sides},
        **{f"{side}_ffn_dim": 1024 for side in sides},
        activation_function="relu",
        dropout=dropout,
        attention_dropout=dropout,
        activation_dropout=dropout,
        scale_embedding=True,
        max_position_embeddings=256,
        pad_token_id=worker.PAD,
        bos_token_id=worker.BOS,
        eos_token_id=worker.EOS,
        decoder_start_token_id=worker.BOS,
        forced_eos_token_id=None,
    )
    return MarianMTModel(config)
