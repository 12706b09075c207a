"""The decoder-only Transformer."""

from typing import Any

import keras

from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.transformer.encoder_block import TransformerEncoderBlock
from keras_seq.models.checks import check_sizes
from keras_seq.models.dummy_encoder import dummy_encoder
from keras_seq.models.inputs import token_input
from keras_seq.models.searchable_model import SearchableModel
from keras_seq.models.transformer_decoder import TransformerDecoder
from keras_seq.models.transformer_parts import make_blocks, make_final_norm, make_position


@keras.saving.register_keras_serializable(package="keras_seq")
class TransformerLanguageModel(SearchableModel):
    """Decoder-only Transformer over token ids, as a functional Keras model.

        x = dropout(sqrt(D) E[id] + position);  causal blocks;  logits = E h

        P(y) = prod over t of P(y_t | y_<t)

    Generates text or scores it. The output layer shares the table of the embedding. Id 0 is
    padding, which changes nothing. The model has the inputs of an encoder-decoder model and ignores
    the source, so that the same code trains, searches and exports it. A prompt is the beginning of
    the target.

    Shapes: B batch, S source steps, T target steps, D units, V vocabulary.

    Args:
        vocabulary_size: Positive integer V.
        num_layers, feedforward_units, num_heads: Positive integers.
        units: Positive integer D, a multiple of `num_heads`.
        dropout: Float in [0, 1), on embeddings and on the output of each part of a block.
        attention_dropout: Float in [0, 1), on attention weights.
        activation_dropout: Float in [0, 1), on the hidden units of the feed-forward layers.
        layer_dropout: Float in [0, 1), as of `TransformerEncoderBlock`.
        activation: Name of a Keras activation, "swiglu", "geglu" or "reglu".
        norm: `"pre"` or `"post"`.
        normalization: `"layer"` or `"rms"`, as of `TransformerEncoderBlock`.
        position: `"sinusoidal"` or `"learned"`, which are added to embeddings; or `"rotary"`,
            `"relative"` (distances up to 16) or `"linear_biases"`, of the self-attention.
        max_positions: Positive integer, the number of learned positions.
        seed: Optional integer, makes the dropout reproducible.
        **kwargs: `name`, and `dtype`, the policy of all layers.

    Call arguments:
        inputs: Dict of int32 ids: `target` `(B, T)`, which begins with the start token, and
            `source` `(B, S)`, which is ignored.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token after `target[:, t]`.

    For search the model offers `encoder`, `decoder_step`, `initial_state` and `grow_state`.

    Raises:
        ValueError: If a size or rate is out of range.

    Example:

    >>> model = TransformerLanguageModel(20, 1, units=8, feedforward_units=16, num_heads=2)
    >>> ids = keras.ops.array([[2, 5, 6]])
    >>> tuple(model({"source": ids[:, :1], "target": ids}).shape)
    (1, 3, 20)

    Reference:
        Liu et al., "Generating Wikipedia by Summarizing Long Sequences", 2018, section 4.2.3,
        https://arxiv.org/abs/1801.10198; Radford et al., "Improving Language Understanding by
        Generative Pre-Training", 2018
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        units: int,
        feedforward_units: int,
        num_heads: int,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        layer_dropout: float = 0.0,
        activation: str = "relu",
        norm: str = "pre",
        normalization: str = "layer",
        position: str = "sinusoidal",
        max_positions: int = 512,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_sizes(num_layers=num_layers)
        args, dtype = self._arguments, self._arguments.dtype
        dropout_seed, *block_seeds = reversed(split_seed(seed, 1 + num_layers))
        decoder = TransformerDecoder(
            embedding=TokenEmbedding(vocabulary_size, units, dtype=dtype, name="embedding"),
            position=make_position(args),
            dropout=Dropout(dropout, seed=dropout_seed, dtype=dtype, name="dropout"),
            blocks=list(
                make_blocks(TransformerEncoderBlock, args, "block", block_seeds, causal=True)
            ),
            norm=make_final_norm(args, "norm"),
            num_heads=num_heads,
        )
        source, target = token_input("source"), token_input("target")
        logits, _ = decoder.logits(target)
        super().__init__(inputs={"source": source, "target": target}, outputs=logits, **kwargs)
        self._set_parts(dummy_encoder(source), decoder)
