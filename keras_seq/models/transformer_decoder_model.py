"""Base class of models of any encoder and the decoder of a Transformer."""

from collections.abc import Iterable
from typing import Any

import keras

from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.transformer.decoder_block import TransformerDecoderBlock
from keras_seq.models.attentive_model import AttentiveModel
from keras_seq.models.inputs import token_input
from keras_seq.models.pointer import make_pointer
from keras_seq.models.transformer_decoder import TransformerDecoder
from keras_seq.models.transformer_parts import make_blocks, make_final_norm

# Shape letters: B batch, S source steps, D units.


class TransformerDecoderModel(AttentiveModel):
    """Functional model of any encoder and the decoder of a Transformer. Abstract."""

    def _make_embedding(self, side: str, name: str | None = None) -> Any:
        """Makes the `TokenEmbedding` of the vocabulary of "source" or "target"."""
        args = self._arguments
        size = getattr(args, f"{side}_vocabulary_size")
        return TokenEmbedding(size, args.units, dtype=args.dtype, name=name or f"{side}_embedding")

    def _make_dropout(self, side: str, seed: int | None) -> Any:
        args = self._arguments
        return Dropout(args.dropout, seed=seed, dtype=args.dtype, name=f"{side}_dropout")

    def _make_decoder(
        self, embedding: Any, position: Any, dropout: Any, seeds: Iterable[int | None]
    ) -> TransformerDecoder:
        """Makes the blocks of the decoder, one per seed, and its final norm."""
        args = self._arguments
        return TransformerDecoder(
            embedding=embedding,
            position=position,
            dropout=dropout,
            blocks=list(make_blocks(TransformerDecoderBlock, args, "decoder_block", seeds)),
            norm=make_final_norm(args, "decoder_norm"),
            num_heads=args.num_heads,
            pointer=make_pointer(args),
        )

    def _connect(
        self, source: Any, encoded: Any, mask: Any, decoder: TransformerDecoder, **kwargs: Any
    ) -> None:
        """Connects source ids `(B, S)` and encoder outputs `(B, S, D)` to the decoder.

        Subclasses call this method instead of `super().__init__`. `mask` `(B, S)` is True at real
        steps of the source, and `decoder` is from `_make_decoder`.
        """
        target = token_input("target")
        memory = {"memory": encoded, "memory_mask": mask}
        if decoder.pointer is not None:
            memory["source"] = source
        logits, _ = decoder.logits(target, memory)
        super().__init__(inputs={"source": source, "target": target}, outputs=logits, **kwargs)
        self._set_parts(keras.Model(source, decoder.project(**memory), name="encoder"), decoder)
        self._set_attention(
            lambda layers: decoder.logits(target, memory, layers),
            num_layers=len(decoder.blocks),
            num_heads=decoder.num_heads,
        )
