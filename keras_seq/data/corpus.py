"""A memory-mapped corpus of token ids."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keras_seq.data.layout import INDEX, OFFSET, SIDES, VERSION, WEIGHT, Part, shard_file
from keras_seq.data.writing import CorpusCounts
from keras_seq.storage import check_regular, read_json
from keras_seq.text import InputError

# A shard of a million pairs takes about a hundred bytes of the index.
_MAX_INDEX_BYTES = 16 << 20


class TokenCorpus:
    """Pairs of token ids on disk, which may exceed memory.

    `write_corpus` writes a corpus, `TokenCorpus.open` opens it. Only the lengths are in memory,
    eight bytes per pair; the ids are memory-mapped.

    Attributes:
        counts: The `CorpusCounts` of `write_corpus`.
        source_lengths, target_lengths: Int32 `(N,)`, tokens of each source and target, without
            begin and end tokens.
        max_source_length, max_target_length: Integers, as for `write_corpus`.
        has_weights: Boolean, whether the pairs have weights.
        has_alignments: Boolean, whether the tokens of the pairs are linked.
        is_packed: Boolean, whether targets are packed segments, which contain their end tokens.
        has_features: Boolean, whether the pairs have features.
        token_features: Integer, as for `write_corpus`.
        max_features: Integer, the largest number of features of a pair.

    Example:

    >>> import tempfile
    >>> from keras_seq.data import write_corpus
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     counts = write_corpus(f"{directory}/corpus", [([5, 6], [7]), ([9], [8, 4])],
    ...                           max_source_length=10, max_target_length=10)
    ...     corpus = TokenCorpus.open(f"{directory}/corpus")
    ...     len(corpus), corpus.target(1).tolist(), corpus.padded("source", [1, 0], 3).tolist()
    (2, [8, 4], [[9, 0, 0], [5, 6, 0]])
    """

    def __init__(
        self,
        counts: CorpusCounts,
        max_lengths: tuple[int, int],
        ids: dict[Part, list[np.ndarray]],
        offsets: dict[Part, list[np.ndarray]],
        weights: list[np.ndarray] | None = None,
        links: tuple[list[np.ndarray], list[np.ndarray]] | None = None,
        packed: bool = False,
        token_features: int = 0,
    ) -> None:
        self.counts = counts
        self.max_source_length, self.max_target_length = max_lengths
        self.has_weights = weights is not None
        self.has_alignments = links is not None
        self.is_packed = packed
        self.has_features = "features" in ids
        self.token_features = token_features
        self._ids = ids
        self._offsets = offsets
        self._weights = weights or []
        # Per shard: `(L, 2)` source and target token of each link, and the offsets of each pair.
        self._links, self._link_offsets = links or ([], [])
        # The index of the first pair of each shard, and the number of pairs last.
        sizes = [len(shard) - 1 for shard in offsets["source"]]
        self._first = np.cumsum([0, *sizes])
        self._lengths: dict[Part, np.ndarray] = {
            part: _lengths(shards) for part, shards in offsets.items()
        }
        self.source_lengths = self._lengths["source"]
        self.target_lengths = self._lengths["target"]
        self.max_features = int(self._lengths.get("features", np.zeros(0)).max(initial=0))

    @classmethod
    def open(cls, directory: str | os.PathLike[str]) -> "TokenCorpus":
        """Memory-maps the corpus in `directory`, which `write_corpus` wrote.

        Raises InputError, with the name of the file, if a file is missing, invalid, or has another
        size than `corpus.json` says.
        """
        path = Path(directory)
        index = _read_index(path / INDEX)
        dtypes: dict[Part, np.dtype] = dict.fromkeys(SIDES, index["dtype"])
        if index["features"]:
            dtypes["features"] = index["features"]
        ids: dict[Part, list[np.ndarray]] = {part: [] for part in dtypes}
        offsets: dict[Part, list[np.ndarray]] = {part: [] for part in dtypes}
        weights: list[np.ndarray] = []
        links: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        min_lengths = {"source": 0 if index["target_only"] else 1, "target": 1, "features": 0}
        for number, shard in enumerate(index["shards"]):
            pairs = shard["pairs"]
            prefix = path / shard_file(number, "")
            for part, dtype in dtypes.items():
                count, least = shard[part], min_lengths[part]
                offsets[part].append(_map_offsets(f"{prefix}{part}.offsets", pairs, count, least))
                ids[part].append(_map(f"{prefix}{part}.ids", dtype, count))
            if index["weights"]:
                weights.append(_map(f"{prefix}weights", WEIGHT, pairs))
            if index["links"]:
                count = shard["links"]
                links[1].append(_map_offsets(f"{prefix}links.offsets", pairs, count, 0))
                mapped = _map(f"{prefix}links", index["links"], 2 * count)
                links[0].append(mapped.reshape(-1, 2))
        return cls(
            index["counts"],
            index["max_lengths"],
            ids,
            offsets,
            weights if index["weights"] else None,
            links if index["links"] else None,
            index["packed"],
            index["token_features"],
        )

    def __len__(self) -> int:
        return int(self._first[-1])

    def source(self, index: int) -> np.ndarray:
        """Returns the ids of one source, an int32 array without begin and end tokens."""
        return self._sequence("source", index)

    def target(self, index: int) -> np.ndarray:
        """Returns the ids of one target, an int32 array without begin and end tokens."""
        return self._sequence("target", index)

    def features(self, index: int) -> np.ndarray:
        """Returns the features of one pair, an int32 array."""
        return self._sequence("features", index)

    def padded(self, part: Part, indices: np.typing.ArrayLike, length: int) -> np.ndarray:
        """Returns the ids of sequences in any order, zero-padded on the right: int32 `(B, length)`.

        `part` is "source", "target" or "features". Raises ValueError if a sequence is longer than
        `length`.
        """
        rows = self._rows(indices)
        result = np.zeros((len(rows), length), np.int32)
        lengths = self._lengths[part][rows]
        if lengths.max(initial=0) > length:
            raise ValueError(
                f"length is {length}, but the longest requested {part} has {lengths.max()} "
                "tokens: increase `length`"
            )
        steps = np.arange(length)
        for shard, in_result, in_shard in self._by_shard(rows):
            starts = self._offsets[part][shard][in_shard].astype(np.int64)
            is_token = steps < lengths[in_result, None]  # (rows of this shard, length)
            block = np.zeros(is_token.shape, np.int32)
            block[is_token] = self._ids[part][shard][(starts[:, None] + steps)[is_token]]
            result[in_result] = block
        return result

    def first_source_ids(self, count: int) -> np.ndarray:
        """Returns the first ids of every source, zero-padded on the right: int32 `(N, count)`."""
        result = np.zeros((len(self), count), np.int32)
        steps = np.arange(count)
        for shard, offsets in enumerate(self._offsets["source"]):
            positions = offsets[:-1].astype(np.int64)[:, None] + steps
            is_token = positions < offsets[1:].astype(np.int64)[:, None]
            block = result[self._first[shard] : self._first[shard + 1]]
            block[is_token] = self._ids["source"][shard][positions[is_token]]
        return result

    def weights(self, indices: np.typing.ArrayLike) -> np.ndarray:
        """Returns the weights of pairs in the loss, float32 `(B,)`; ones if there are none."""
        rows = self._rows(indices)
        result = np.ones(len(rows), np.float32)
        if self.has_weights:
            for shard, in_result, in_shard in self._by_shard(rows):
                result[in_result] = self._weights[shard][in_shard]
        return result

    def links(self, indices: np.typing.ArrayLike) -> np.ndarray:
        """Returns the links between the tokens of pairs; no rows for a corpus without alignments.

        Int64 `(L, 3)`: position in `indices`, source token, target token; sorted by position.
        """
        rows = self._rows(indices)
        result = [np.zeros((0, 3), np.int64)]
        if self.has_alignments:
            for shard, in_result, in_shard in self._by_shard(rows):
                offsets = self._link_offsets[shard].astype(np.int64)
                starts, counts = offsets[in_shard], offsets[in_shard + 1] - offsets[in_shard]
                # Numbers the links of each pair from 0.
                number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
                links = self._links[shard][np.repeat(starts, counts) + number]
                row_numbers = np.repeat(in_result, counts)
                result.append(np.column_stack([row_numbers, links]).astype(np.int64))
        joined = np.concatenate(result)
        return joined[np.argsort(joined[:, 0], kind="stable")]

    def _rows(self, indices: np.typing.ArrayLike) -> np.ndarray:
        rows = np.asarray(indices, dtype=np.int64)
        if rows.size and (rows.min() < 0 or rows.max() >= len(self)):
            raise IndexError(f"indices must be from 0 up to, not with, {len(self)}")
        return rows

    def _by_shard(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yields each shard with the positions of its pairs in `rows` and in the shard."""
        shards = np.searchsorted(self._first, rows, side="right") - 1
        for shard in np.unique(shards).tolist():
            in_result = np.flatnonzero(shards == shard)
            yield shard, in_result, rows[in_result] - self._first[shard]

    def _sequence(self, side: Part, index: int) -> np.ndarray:
        if not 0 <= index < len(self):
            raise IndexError(f"index must be from 0 up to, not with, {len(self)}; it is {index}")
        shard = int(np.searchsorted(self._first, index, side="right")) - 1
        start, end = self._offsets[side][shard][index - self._first[shard] :][:2].tolist()
        return self._ids[side][shard][start:end].astype(np.int32)


def _lengths(offsets: list[np.ndarray]) -> np.ndarray:
    empty = np.zeros(0, np.int32)
    return np.concatenate([empty, *(np.diff(shard).astype(np.int32) for shard in offsets)])


def _map_offsets(path: str, pairs: int, total: int, min_length: int) -> np.ndarray:
    offsets = _map(path, OFFSET, pairs + 1)
    lengths = offsets[1:] - offsets[:-1].astype(np.int64)
    if offsets[0] != 0 or offsets[-1] != total or lengths.min() < min_length:
        raise InputError(f"{path}: not the offsets of {pairs} sequences")
    return offsets


def _map(path: str, dtype: np.dtype, count: int) -> np.ndarray:
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


def _read_index(path: Path) -> dict:
    """Reads and validates `corpus.json`; converts its dtypes and counts."""
    index = read_json(path, _MAX_INDEX_BYTES)
    version = index.get("version")
    if version != VERSION:
        raise InputError(
            f"{path}: format version {version!r}, expected {VERSION}; write the corpus again"
        )
    try:
        if index["dtype"] not in ("uint16", "uint32"):
            raise ValueError(index["dtype"])
        target_only, packed = index.get("sourceless", False), index.get("packed", False)
        if target_only not in (True, False) or packed not in (True, False):
            raise ValueError((target_only, packed))
        shards = [
            {
                "pairs": _integer(shard["pairs"], 1),
                "source": _integer(shard["source_tokens"], 0 if target_only else 1),
                "target": _integer(shard["target_tokens"], 1),
                "links": _integer(shard.get("links", 0), 0),
                "features": _integer(shard.get("features", 0), 0),
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
        dtype = np.dtype(index["dtype"]).newbyteorder("<")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not the index of a corpus; write it again") from error
    if counts.kept != sum(shard["pairs"] for shard in shards):
        raise InputError(f"{path}: the shards do not add up to {counts.kept!r} pairs")
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


def _integer(value: object, minimum: int) -> int:
    if type(value) is not int or value < minimum:
        raise ValueError(value)
    return value
