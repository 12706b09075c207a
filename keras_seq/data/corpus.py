"""A corpus of token ids on disk, mapped into memory."""

import json
import os
from pathlib import Path

import numpy as np

from keras_seq.data.layout import INDEX, OFFSET, SIDES, VERSION, Side, ids_name, offsets_name
from keras_seq.data.writing import CorpusCounts
from keras_seq.text import InputError


class TokenCorpus:
    """Pairs of token ids that lie on disk and may be larger than memory.

    Made by `write_corpus`, opened by `TokenCorpus.open`. Only the lengths are held
    in memory, eight bytes a pair; the ids are mapped, and the system reads and
    forgets them as needed.

    Attributes:
        counts: The `CorpusCounts` of the writing.
        source_lengths: Int32 array `(N,)`, tokens of each source, without begin and end.
        target_lengths: Int32 array `(N,)`, the same for the targets.

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
        ids: dict[Side, list[np.ndarray]],
        offsets: dict[Side, list[np.ndarray]],
    ) -> None:
        self.counts = counts
        self._ids = ids
        self._offsets = offsets
        # The index of the first pair of each shard, and the number of pairs last.
        sizes = [len(shard) - 1 for shard in offsets["source"]]
        self._first = np.cumsum([0, *sizes])
        self.source_lengths = _lengths(offsets["source"])
        self.target_lengths = _lengths(offsets["target"])

    @classmethod
    def open(cls, directory: str | os.PathLike[str]) -> "TokenCorpus":
        """Maps the corpus in `directory` into memory.

        Args:
            directory: A directory made by `write_corpus`.

        Returns:
            The corpus.

        Raises:
            InputError: If a file is missing, is not of the size that `corpus.json`
                says, or holds something else; the message names the file.
        """
        path = Path(directory)
        index = _read_index(path / INDEX)
        ids: dict[Side, list[np.ndarray]] = {side: [] for side in SIDES}
        offsets: dict[Side, list[np.ndarray]] = {side: [] for side in SIDES}
        for number, shard in enumerate(index["shards"]):
            for side in SIDES:
                tokens = shard[f"{side}_tokens"]
                name = path / offsets_name(number, side)
                bounds = _map(name, OFFSET, shard["pairs"] + 1)
                if bounds[0] != 0 or bounds[-1] != tokens or not (bounds[:-1] < bounds[1:]).all():
                    raise InputError(f"{name}: not the offsets of {shard['pairs']} sequences")
                offsets[side].append(bounds)
                ids[side].append(_map(path / ids_name(number, side), index["dtype"], tokens))
        return cls(index["counts"], ids, offsets)

    def __len__(self) -> int:
        return int(self._first[-1])

    def source(self, index: int) -> np.ndarray:
        """The ids of one source, an int32 array without begin and end tokens."""
        return self._sequence("source", index)

    def target(self, index: int) -> np.ndarray:
        """The ids of one target, an int32 array without begin and end tokens."""
        return self._sequence("target", index)

    def padded(self, side: Side, indices: np.typing.ArrayLike, length: int) -> np.ndarray:
        """The ids of many sequences in one array, zeros behind each.

        Args:
            side: `"source"` or `"target"`.
            indices: Integer array `(B,)` of pairs, in any order.
            length: Integer, the width of the result.

        Returns:
            Int32 array `(B, length)`.

        Raises:
            ValueError: If a sequence is longer than `length`.
            IndexError: If an index is not in `[0, N)`.
        """
        rows = np.asarray(indices, dtype=np.int64)
        if rows.size and (rows.min() < 0 or rows.max() >= len(self)):
            raise IndexError(f"indices must be from 0 up to, not with, {len(self)}")
        result = np.zeros((len(rows), length), np.int32)
        lengths = (self.source_lengths if side == "source" else self.target_lengths)[rows]
        if lengths.max(initial=0) > length:
            raise ValueError(
                f"length is {length}, but the longest {side} asked for has {lengths.max()} "
                "tokens; ask for a length at least as large"
            )
        shards = np.searchsorted(self._first, rows, side="right") - 1
        steps = np.arange(length)
        for shard in np.unique(shards):
            here = np.flatnonzero(shards == shard)
            starts = self._offsets[side][shard][rows[here] - self._first[shard]].astype(np.int64)
            real = steps < lengths[here, None]  # (rows of this shard, length)
            block = np.zeros(real.shape, np.int32)
            block[real] = self._ids[side][shard][(starts[:, None] + steps)[real]]
            result[here] = block
        return result

    def _sequence(self, side: Side, index: int) -> np.ndarray:
        if not 0 <= index < len(self):
            raise IndexError(f"index must be from 0 up to, not with, {len(self)}; it is {index}")
        shard = int(np.searchsorted(self._first, index, side="right")) - 1
        start, end = self._offsets[side][shard][index - self._first[shard] :][:2].tolist()
        return self._ids[side][shard][start:end].astype(np.int32)


def _lengths(offsets: list[np.ndarray]) -> np.ndarray:
    empty = np.zeros(0, np.int32)
    return np.concatenate([empty, *(np.diff(shard).astype(np.int32) for shard in offsets)])


def _map(path: Path, dtype: np.dtype, count: int) -> np.ndarray:
    expected = count * dtype.itemsize
    try:
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); write it again") from error
    if size != expected:
        raise InputError(
            f"{path}: {size} bytes, expected {expected}; the corpus is damaged, write it again"
        )
    # A plain array over the mapping: indexing np.memmap itself is several times slower.
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))


def _read_index(path: Path) -> dict:
    """Reads and checks `corpus.json`; `dtype` and `counts` come back as objects."""
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise InputError(f"{path}: not JSON, expected the index of a corpus") from error
    version = index.get("version") if isinstance(index, dict) else None
    if version != VERSION:
        raise InputError(
            f"{path}: format version {version!r}, expected {VERSION}; write the corpus again"
        )
    try:
        if index["dtype"] not in ("uint16", "uint32"):
            raise ValueError(index["dtype"])
        shards = [
            {name: _positive(shard[name]) for name in ("pairs", "source_tokens", "target_tokens")}
            for shard in index["shards"]
        ]
        counts = CorpusCounts(**index["counts"])
        dtype = np.dtype(index["dtype"]).newbyteorder("<")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not the index of a corpus; write it again") from error
    if counts.kept != sum(shard["pairs"] for shard in shards):
        raise InputError(f"{path}: the shards do not add up to {counts.kept!r} pairs")
    return {"shards": shards, "counts": counts, "dtype": dtype}


def _positive(value: object) -> int:
    if type(value) is not int or value < 1:
        raise ValueError(value)
    return value
