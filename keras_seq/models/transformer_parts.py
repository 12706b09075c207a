"""Layers that the Transformer models share."""

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

from keras_seq.layers.internal.layer_normalization import LayerNormalization
from keras_seq.layers.transformer.encoder_block import TransformerEncoderBlock

_BLOCK_ARGUMENTS = (
    "num_heads",
    "feedforward_units",
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "activation",
    "norm",
)


def make_blocks(
    block: Any, arguments: SimpleNamespace, name: str, seeds: Iterable[int | None], **options: Any
) -> Iterator[Any]:
    """Yields one block per dropout seed, named `name_0`, `name_1`, ...

    It is a generator because layers draw their initial weights in the order in which they are made
    and built.
    """
    options |= {key: getattr(arguments, key) for key in _BLOCK_ARGUMENTS}
    for i, seed in enumerate(seeds):
        yield block(**options, seed=seed, dtype=arguments.dtype, name=f"{name}_{i}")


def make_final_norm(arguments: SimpleNamespace, name: str) -> Any:
    """Makes the layer normalization after the last pre-norm block, or None for post-norm blocks."""
    if arguments.norm != "pre":
        return None
    return LayerNormalization(epsilon=1e-5, dtype=arguments.dtype, name=name)


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
