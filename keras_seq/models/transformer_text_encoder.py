"""The Transformer text encoder."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.models.checks import check_sizes
from keras_seq.models.text_encoder import TextEncoder
from keras_seq.models.token_vectors import embed_tokens
from keras_seq.models.transformer_parts import (
    encode_with_blocks,
    make_encoder_blocks,
    make_position,
)


@keras.saving.register_keras_serializable(package="keras_seq")
class TransformerTextEncoder(TextEncoder):
    """Text encoder with the blocks of a Transformer, as a functional Keras model.

        steps = blocks over dropout(sqrt(D) E[id] + position)

    For large labeled corpora; with few labels prefer `BackboneTextEncoder`, `BagTextEncoder` or
    `RecurrentTextEncoder`. Id 0 is padding, which changes nothing.

    Shapes: B batch, S steps, D units.

    Args:
        vocabulary_size, num_layers, feedforward_units, num_heads: Positive integers.
        units: Positive integer D, a multiple of `num_heads`.
        dropout: Float in [0, 1), on embeddings and on the output of each part of a block.
        attention_dropout, activation_dropout: Floats in [0, 1), on attention weights and on the
            hidden units of the feed-forward layers.
        layer_dropout: Float in [0, 1), as of `TransformerEncoderBlock`.
        activation: Name of a Keras activation, "swiglu", "geglu" or "reglu".
        norm: `"pre"` or `"post"`.
        normalization: `"layer"` or `"rms"`, as of `TransformerEncoderBlock`.
        position: `"sinusoidal"` or `"learned"`, which are added to embeddings; or `"rotary"`,
            `"relative"` (distances up to 16) or `"linear_biases"`, of the self-attention.
        max_positions: Positive integer, the number of learned positions.
        character_filters: Integer, the filters of a `CharacterConvolution` of each of two widths; 0
            for none.
        form_units: Integer, the units of each feature of a `WordFormEmbedding`; 0 for none.
        seed: Optional integer, makes the dropout reproducible.
        **kwargs: `name`, and `dtype`, the policy of all layers.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)`; and with `character_filters` or `form_units`
            int32 `characters` `(B, S, C)`, the code points that `keras_seq.text.word_characters`
            returns for the word of each token, or zeros.

    Returns:
        Dict of `steps` `(B, S, D)`, and bool `mask` `(B, S)`, True where a token is real.

    Raises:
        ValueError: If a size or rate is out of range.

    Example:

    >>> encoder = TransformerTextEncoder(20, units=8, feedforward_units=16, num_heads=2)
    >>> tuple(encoder({"source": keras.ops.array([[5, 6, 0]])})["steps"].shape)
    (1, 3, 8)

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 3.1,
        https://arxiv.org/abs/1706.03762; Devlin et al., "BERT: Pre-training of Deep Bidirectional
        Transformers for Language Understanding", 2019, https://arxiv.org/abs/1810.04805
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int = 2,
        units: int = 256,
        feedforward_units: int = 1024,
        num_heads: int = 4,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation_dropout: float = 0.1,
        layer_dropout: float = 0.0,
        activation: str = "relu",
        norm: str = "pre",
        normalization: str = "layer",
        position: str = "sinusoidal",
        max_positions: int = 512,
        character_filters: int = 0,
        form_units: int = 0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_sizes(num_layers=num_layers)
        args, dtype = self._arguments, self._arguments.dtype
        positions = make_position(args)
        *block_seeds, dropout_seed = split_seed(seed, 1 + num_layers)
        drop = Dropout(dropout, seed=dropout_seed, dtype=dtype, name="encoder_dropout")
        inputs, x = embed_tokens(args, vocabulary_size, units)
        mask = ops.not_equal(inputs["source"], 0)
        if x.shape[-1] != units:
            x = ExactDense(units, dtype=dtype, name="projection")(x)
        x = drop(x if positions is None else positions(x))
        steps = encode_with_blocks(x, mask, make_encoder_blocks(args, block_seeds), args)
        outputs = {"steps": steps, "mask": mask}
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
