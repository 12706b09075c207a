"""Layers that the Transformer models share."""

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

from keras_seq.layers.internal.normalization import make_normalization
from keras_seq.layers.positions.learned_position import LearnedPosition
from keras_seq.layers.positions.linear_biases import LinearBiases
from keras_seq.layers.positions.relative_position import RelativePosition
from keras_seq.layers.positions.rotary_position import RotaryPosition
from keras_seq.layers.positions.sinusoidal_position import SinusoidalPosition
from keras_seq.layers.transformer.decoder_block import TransformerDecoderBlock
from keras_seq.layers.transformer.encoder_block import TransformerEncoderBlock
from keras_seq.models.checks import check_choice

_BLOCK_ARGUMENTS = (
    "num_heads",
    "feedforward_units",
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "layer_dropout",
    "activation",
    "norm",
    "normalization",
)
# The largest distance with a vector of its own, as in the paper.
_MAX_DISTANCE = 16
POSITIONS = ("sinusoidal", "learned", "rotary", "relative", "linear_biases")


def make_blocks(
    block: Any, arguments: SimpleNamespace, name: str, seeds: Iterable[int | None], **options: Any
) -> Iterator[Any]:
    """Yields one block per dropout seed, named `name_0`, `name_1`, ...

    It is a generator because layers draw their initial weights in the order in which they are made
    and built.
    """
    options |= {key: getattr(arguments, key) for key in _BLOCK_ARGUMENTS}
    for i, seed in enumerate(seeds):
        position = _make_attention_position(arguments)
        # Only a Transformer with a source has this argument.
        rotates = getattr(arguments, "cross_position", "none") == "rotary"
        if rotates and block is TransformerDecoderBlock:
            options["cross_position"] = RotaryPosition(dtype=arguments.dtype, name="cross_position")
        yield block(
            **options, position=position, seed=seed, dtype=arguments.dtype, name=f"{name}_{i}"
        )


def make_position(arguments: SimpleNamespace) -> Any:
    """Makes the layer that adds positions to embeddings, or None if the attention has positions."""
    check_choice("position", arguments.position, POSITIONS)
    dtype = arguments.dtype
    if arguments.position == "sinusoidal":
        return SinusoidalPosition(dtype=dtype, name="position")
    if arguments.position == "learned":
        return LearnedPosition(arguments.max_positions, dtype=dtype, name="position")
    return None


def _make_attention_position(arguments: SimpleNamespace) -> Any:
    """Makes the `position` of the self-attention of a block, or None."""
    dtype = arguments.dtype
    if arguments.position == "rotary":
        return RotaryPosition(dtype=dtype, name="position")
    if arguments.position == "relative":
        return RelativePosition(_MAX_DISTANCE, dtype=dtype, name="position")
    if arguments.position == "linear_biases":
        return LinearBiases(dtype=dtype, name="position")
    return None


def make_final_norm(arguments: SimpleNamespace, name: str) -> Any:
    """Makes the normalization after the last pre-norm block, or None for post-norm blocks."""
    if arguments.norm != "pre":
        return None
    return make_normalization(arguments.normalization, arguments.dtype, name)


def make_encoder_blocks(arguments: SimpleNamespace, seeds: Iterable[int | None]) -> Iterator[Any]:
    """Yields the blocks of an encoder.

    They have the same names in all models, so that a model can start from the encoder weights of
    another one.
    """
    return make_blocks(TransformerEncoderBlock, arguments, "encoder_block", seeds)


def encode_with_blocks(x: Any, mask: Any, blocks: Iterable[Any], arguments: SimpleNamespace) -> Any:
    """Runs encoder blocks and the final norm on symbolic `x` `(B, S, D)`."""
    for block in blocks:
        x = block(x, mask=mask)
    norm = make_final_norm(arguments, "encoder_norm")
    return norm(x) if norm else x
