"""Reads the files of a corpus, which may come from anywhere."""

from pathlib import Path

import numpy as np

from keras_seq.data.layout import INDEX, OFFSET, SHARD_TOKENS, SIDES, VERSION
from keras_seq.data.writing import CorpusCounts
from keras_seq.storage import check_regular, read_json
from keras_seq.storage.limits import MAX_INDEX_BYTES
from keras_seq.text import InputError

# Above every number of pairs or tokens of a corpus.
_MAX_COUNT = 2**63


def map_offsets(path: str, pairs: int, total: int, lengths: tuple[int, int]) -> np.ndarray:
    """Memory-maps the offsets of sequences whose lengths are within two bounds.

    `pairs` is the number of sequences, and `total` that of their ids. Raises InputError if the file
    is damaged.
    """
    offsets = map_array(path, OFFSET, pairs + 1)
    found = offsets[1:] - offsets[:-1].astype(np.int64)
    if offsets[0] != 0 or offsets[-1] != total or found.min() < lengths[0]:
        raise InputError(f"{path}: not the offsets of {pairs} sequences")
    if (longest := int(found.max())) > lengths[1]:
        raise InputError(
            f"{path}: a sequence of {longest:,} tokens, expected at most {lengths[1]:,} as {INDEX} "
            "says; write the corpus again"
        )
    return offsets


def map_array(path: str, dtype: np.dtype, count: int) -> np.ndarray:
    """Memory-maps `count` numbers; raises InputError if the file has another size."""
    expected = count * dtype.itemsize
    try:
        size = check_regular(Path(path)).stat().st_size
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); write it again") from error
    if size != expected:
        raise InputError(
            f"{path}: {size} bytes, expected {expected}; the corpus is damaged, write it again"
        )
    if not count:
        # mmap rejects empty files.
        return np.zeros(0, dtype)
    # Indexing np.memmap is several times slower than indexing a plain array over it.
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))


def read_index(path: Path) -> dict:
    """Reads and validates `corpus.json`; converts its dtypes and counts."""
    index = read_json(path, MAX_INDEX_BYTES)
    version = index.get("version")
    if version != VERSION:
        raise InputError(
            f"{path}: format version {_shown(version)}, expected {VERSION}; write the corpus again"
        )
    try:
        if index["dtype"] not in ("uint16", "uint32"):
            raise ValueError(index["dtype"])
        target_only, packed = index.get("sourceless", False), index.get("packed", False)
        if target_only not in (True, False) or packed not in (True, False):
            raise ValueError((target_only, packed))
        shards = [
            {
                "pairs": _integer(shard["pairs"], 1, SHARD_TOKENS),
                "source": _integer(shard["source_tokens"], 0 if target_only else 1, SHARD_TOKENS),
                "target": _integer(shard["target_tokens"], 1, SHARD_TOKENS),
                "links": _integer(shard.get("links", 0), 0, SHARD_TOKENS),
                "features": _integer(shard.get("features", 0), 0, SHARD_TOKENS),
            }
            for shard in index["shards"]
        ]
        max_lengths = tuple(_integer(index[f"max_{side}_length"], 1) for side in SIDES)
        weights, links = index.get("weights", False), index.get("links")
        if weights not in (True, False) or links not in (None, "uint16", "uint32"):
            raise ValueError((weights, links))
        features = index.get("features")
        if features not in (None, "uint16", "uint32"):
            raise ValueError(features)
        token_features = _integer(index.get("token_features", 0), 0)
        counts = CorpusCounts(**index["counts"])
        for count in vars(counts).values():
            _integer(count, 0)
        dtype = np.dtype(index["dtype"]).newbyteorder("<")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not the index of a corpus; write it again") from error
    if counts.kept != sum(shard["pairs"] for shard in shards):
        raise InputError(f"{path}: the shards do not add up to {counts.kept} pairs")
    return {
        "shards": shards,
        "counts": counts,
        "dtype": dtype,
        "max_lengths": max_lengths,
        "weights": weights,
        "links": links and np.dtype(links).newbyteorder("<"),
        "target_only": target_only,
        "packed": packed,
        "features": features and np.dtype(features).newbyteorder("<"),
        "token_features": token_features,
    }


def _integer(value: object, minimum: int, maximum: int = _MAX_COUNT) -> int:
    if type(value) is not int or not minimum <= value <= maximum:
        raise ValueError(value)
    return value


def _shown(value: object) -> str:
    if isinstance(value, list | dict):
        return f"a {type(value).__name__}"
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
