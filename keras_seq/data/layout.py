"""How a corpus lies on disk: the names of its files and what `corpus.json` says.

    corpus.json                     version, dtype, counts, pairs and tokens of each shard
    shard-00000.source.ids          the token ids of all sources of the shard, one after the other
    shard-00000.source.offsets      pairs + 1 numbers: pair i is ids[offsets[i]:offsets[i + 1]]
    shard-00000.target.ids          the same for the targets
    shard-00000.target.offsets
    shard-00000.weights             of weighted pairs: one float32 for each
    shard-00000.links               of aligned pairs: source and target token of each link
    shard-00000.links.offsets       pairs + 1 numbers: pair i has links[offsets[i]:offsets[i + 1]]

All numbers are little-endian, without headers, so that a file can be mapped as it is.
"""

from typing import Literal

import numpy as np

Side = Literal["source", "target"]

VERSION = 1
INDEX = "corpus.json"
SIDES: tuple[Side, Side] = ("source", "target")
OFFSET = np.dtype("<u4")
# The offsets are 32-bit: half the disk of 64-bit ones, and a shard holds fewer tokens than this.
SHARD_TOKENS = 2**31
WEIGHT = np.dtype("<f4")


def ids_name(shard: int, side: Side) -> str:
    """The name of the file with the token ids of one side of a shard."""
    return f"shard-{shard:05d}.{side}.ids"


def offsets_name(shard: int, side: Side) -> str:
    """The name of the file with the offsets of one side of a shard."""
    return f"shard-{shard:05d}.{side}.offsets"


def weights_name(shard: int) -> str:
    """The name of the file with the weights of the pairs of a shard."""
    return f"shard-{shard:05d}.weights"


def links_name(shard: int) -> str:
    """The name of the file with the links between the tokens of the pairs of a shard."""
    return f"shard-{shard:05d}.links"


def link_offsets_name(shard: int) -> str:
    """The name of the file with the offsets of the links of a shard."""
    return f"shard-{shard:05d}.links.offsets"


def id_dtype(vocabulary_size: int | None) -> np.dtype:
    """The smallest unsigned type that holds every id below `vocabulary_size`."""
    if vocabulary_size is not None and vocabulary_size <= 2**16:
        return np.dtype("<u2")
    return np.dtype("<u4")
