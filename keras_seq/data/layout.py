"""Files of a corpus on disk, little-endian and without headers, so they can be memory-mapped.

corpus.json                     version, dtype, counts, pairs and tokens of each shard
shard-00000.source.ids          token ids of all sources of the shard, concatenated
shard-00000.source.offsets      pairs + 1 numbers: pair i is ids[offsets[i]:offsets[i + 1]]
shard-00000.target.ids          the same for the targets
shard-00000.target.offsets
shard-00000.weights             weighted pairs only: one float32 per pair
shard-00000.links               aligned pairs only: source and target token of each link
shard-00000.links.offsets       pairs + 1 numbers: pair i has links[offsets[i]:offsets[i + 1]]
shard-00000.features.ids        pairs with features only: feature ids, like those of the source
shard-00000.features.offsets
"""

from typing import Literal

import numpy as np

Side = Literal["source", "target"]
# The sequences of ids that a pair may have.
Part = Literal["source", "target", "features"]

VERSION = 1
INDEX = "corpus.json"
SIDES: tuple[Side, Side] = ("source", "target")
OFFSET = np.dtype("<u4")
# Maximum tokens of a shard. Offsets have 32 bits, which take half the disk space of 64 bits.
SHARD_TOKENS = 2**31
WEIGHT = np.dtype("<f4")


def shard_file(shard: int, kind: str) -> str:
    """Returns the name of a file of a shard; `kind` is for example `"source.ids"`."""
    return f"shard-{shard:05d}.{kind}"


def id_dtype(vocabulary_size: int | None) -> np.dtype:
    """Returns the smallest unsigned type that holds every id below `vocabulary_size`."""
    if vocabulary_size is not None and vocabulary_size <= 2**16:
        return np.dtype("<u2")
    return np.dtype("<u4")
