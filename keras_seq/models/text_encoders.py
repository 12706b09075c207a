"""What classifiers and taggers read a text by: parts of a functional graph, from ids to vectors."""

from keras import ops

from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.layer_normalization import LayerNormalization
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.positions.sinusoidal_position import SinusoidalPosition
from keras_seq.layers.transformer.encoder_block import TransformerEncoderBlock
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.recurrent_parts import CHOICES, bidirectional_layers, recurrent_reader

# Shape letters: B batch, S steps, U units of a direction, D units.

BLOCK_ARGUMENTS = (
    "num_heads",
    "feedforward_units",
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "activation",
    "norm",
)


def recurrent_encoder(source, config, seed, dtype):
    """Bidirectional layers over embeddings.

    Args:
        source: Symbolic ids `(B, S)`.
        config: Dict of a model's arguments.
        seed: Optional integer, of the dropouts.
        dtype: Dtype policy of all layers, or None for the default.

    Returns:
        Outputs `(B, S, 2U)`; the last state of each direction at the real
        steps, joined, `(B, 2U)`; and the mask `(B, S)`, True where a step is
        real.
    """
    check_choice("cell", config["cell"], CHOICES["cell"])
    check_sizes(
        num_layers=config["num_layers"],
        embedding_units=config["embedding_units"],
        units=config["units"],
    )
    embedding = TokenEmbedding(
        config["vocabulary_size"], config["embedding_units"], dtype=dtype, name="embedding"
    )
    dropped, *between = (
        Dropout(config["dropout"], seed=seed, dtype=dtype, name=f"encoder_dropout_{i}")
        for i, seed in enumerate(split_seed(seed, config["num_layers"]))
    )
    layers = bidirectional_layers(config["cell"], config["num_layers"], config["units"], dtype)
    mask = ops.not_equal(source, 0)
    outputs, last, _ = recurrent_reader(layers, between)(dropped(embedding(source)), mask)
    return outputs, last, mask


def transformer_encoder(source, config, seed, dtype):
    """Blocks of self-attention over embeddings with positions.

    Args:
        source: Symbolic ids `(B, S)`.
        config: Dict of a model's arguments.
        seed: Optional integer, of the dropouts.
        dtype: Dtype policy of all layers, or None for the default.

    Returns:
        Outputs `(B, S, D)`, and the mask `(B, S)`, True where a step is real.
    """
    check_sizes(num_layers=config["num_layers"])
    embedding = TokenEmbedding(
        config["vocabulary_size"], config["units"], dtype=dtype, name="embedding"
    )
    position = SinusoidalPosition(dtype=dtype, name="position")
    seeds = split_seed(seed, 1 + config["num_layers"])
    dropout = Dropout(config["dropout"], seed=seeds.pop(), dtype=dtype, name="encoder_dropout")
    mask = ops.not_equal(source, 0)
    x = dropout(position(embedding(source)))
    arguments = {name: config[name] for name in BLOCK_ARGUMENTS}
    # Named as in `Transformer`, so that one can begin with the encoder of another.
    for i, seed in enumerate(seeds):
        x = TransformerEncoderBlock(**arguments, seed=seed, dtype=dtype, name=f"encoder_block_{i}")(
            x, mask=mask
        )
    if config["norm"] == "pre":
        x = LayerNormalization(epsilon=1e-5, dtype=dtype, name="encoder_norm")(x)
    return x, mask
