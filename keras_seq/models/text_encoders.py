"""Encoders of classifiers and taggers, from ids to vectors in a functional model."""

from types import SimpleNamespace
from typing import Any

from keras import ops

from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.positions.sinusoidal_position import SinusoidalPosition
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.recurrent_encoder import (
    RECURRENT_LAYERS,
    encode_bidirectional,
    make_bidirectional_layers,
)
from keras_seq.models.transformer_parts import encode_with_blocks, make_encoder_blocks

# Shape letters: B batch, S steps, U units of a direction, D units.


def recurrent_encoder(
    source: Any, arguments: SimpleNamespace, seed: int | None
) -> tuple[Any, Any, Any]:
    """Bidirectional layers over the embeddings of ids `(B, S)`.

    Returns outputs `(B, S, 2U)`; the last states of both directions, joined, `(B, 2U)`; and the
    mask `(B, S)`, True where a step is real.
    """
    args, dtype = arguments, arguments.dtype
    check_choice("cell", args.cell, tuple(RECURRENT_LAYERS))
    check_sizes(num_layers=args.num_layers, embedding_units=args.embedding_units, units=args.units)
    embedding = TokenEmbedding(
        args.vocabulary_size, args.embedding_units, dtype=dtype, name="embedding"
    )
    dropouts = [
        Dropout(args.dropout, seed=seed, dtype=dtype, name=f"encoder_dropout_{i}")
        for i, seed in enumerate(split_seed(seed, args.num_layers))
    ]
    layers = make_bidirectional_layers(args.cell, args.num_layers, args.units, dtype)
    mask = ops.not_equal(source, 0)
    x = dropouts[0](embedding(source))
    outputs, last_states = encode_bidirectional(layers, dropouts[1:], x, mask)
    return outputs, last_states[-1][0], mask


def transformer_encoder(
    source: Any, arguments: SimpleNamespace, seed: int | None
) -> tuple[Any, Any]:
    """Blocks of self-attention over the embeddings of ids `(B, S)` with positions.

    Returns outputs `(B, S, D)`, and the mask `(B, S)`, True where a step is real.
    """
    args, dtype = arguments, arguments.dtype
    check_sizes(num_layers=args.num_layers)
    embedding = TokenEmbedding(args.vocabulary_size, args.units, dtype=dtype, name="embedding")
    position = SinusoidalPosition(dtype=dtype, name="position")
    *block_seeds, dropout_seed = split_seed(seed, 1 + args.num_layers)
    dropout = Dropout(args.dropout, seed=dropout_seed, dtype=dtype, name="encoder_dropout")
    mask = ops.not_equal(source, 0)
    x = dropout(position(embedding(source)))
    return encode_with_blocks(x, mask, make_encoder_blocks(args, block_seeds), args), mask
