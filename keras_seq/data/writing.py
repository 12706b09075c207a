"""Pairs of token ids to shards on disk, as a stream."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np

from keras_seq.data.ids import BOS, EOS, PAD
from keras_seq.data.layout import (
    INDEX,
    OFFSET,
    SHARD_TOKENS,
    SIDES,
    VERSION,
    id_dtype,
    ids_name,
    offsets_name,
)
from keras_seq.data.whole import whole_directory

# Tokens held as Python objects before they go to disk: some ten megabytes.
_BUFFER_TOKENS = 2**18


@dataclass(frozen=True)
class CorpusCounts:
    """What became of the pairs given to `write_corpus`.

    Attributes:
        kept: Pairs in the corpus.
        dropped_empty: Pairs left out because a side has no token.
        dropped_long: Pairs left out because a side is longer than allowed.
        source_tokens: Tokens of the kept sources.
        target_tokens: Tokens of the kept targets.
    """

    kept: int = 0
    dropped_empty: int = 0
    dropped_long: int = 0
    source_tokens: int = 0
    target_tokens: int = 0


def write_corpus(
    directory: str | os.PathLike[str],
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]],
    *,
    max_source_length: int,
    max_target_length: int,
    shard_pairs: int = 1_000_000,
    vocabulary_size: int | None = None,
) -> CorpusCounts:
    """Writes pairs of token ids to a directory that `TokenCorpus.open` maps into memory.

    The pairs are taken one by one and never held together: memory does not grow
    with the corpus. Pairs with an empty side and pairs with a side that is too
    long are left out and counted. The directory appears when it is whole; a
    write that fails leaves nothing.

    Args:
        directory: Path to make. It must not exist, or be an empty directory.
        pairs: Iterable of `(source ids, target ids)` without begin and end tokens,
            lists or 1-D integer arrays.
        max_source_length: Positive integer, the longest source kept, in tokens.
        max_target_length: Positive integer, the longest target kept, in tokens.
        shard_pairs: Positive integer, pairs in one file. Defaults to a million.
        vocabulary_size: Optional positive integer above every id (of both sides).
            Up to 65,536 an id takes two bytes on disk; without it, four.

    Returns:
        A `CorpusCounts`: pairs kept and dropped, tokens of both sides. It is stored
        with the corpus too.

    Raises:
        ValueError: If a number is not positive, or a kept pair has an id outside
            `[0, vocabulary_size)` or one of the ids 0 (padding), 2 (begin) and
            3 (end), which the batches add by themselves.
        InputError: If `directory` exists and is not empty.

    Example:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_corpus(f"{directory}/corpus", [([5, 6], [7]), ([], [8])],
    ...                  max_source_length=10, max_target_length=10)
    CorpusCounts(kept=1, dropped_empty=1, dropped_long=0, source_tokens=2, target_tokens=1)
    """
    for name, value in (
        ("max_source_length", max_source_length),
        ("max_target_length", max_target_length),
        ("shard_pairs", shard_pairs),
        ("vocabulary_size", 1 if vocabulary_size is None else vocabulary_size),
    ):
        if value < 1:
            raise ValueError(f"{name} must be a positive integer, received {value!r}")
    with whole_directory(directory) as temporary:
        with _Shards(temporary, shard_pairs, vocabulary_size) as shards:
            dropped_empty = dropped_long = 0
            for source, target in pairs:
                if len(source) == 0 or len(target) == 0:
                    dropped_empty += 1
                elif len(source) > max_source_length or len(target) > max_target_length:
                    dropped_long += 1
                else:
                    shards.add(source, target)
        counts = CorpusCounts(
            kept=sum(shard["pairs"] for shard in shards.written),
            dropped_empty=dropped_empty,
            dropped_long=dropped_long,
            source_tokens=sum(shard["source_tokens"] for shard in shards.written),
            target_tokens=sum(shard["target_tokens"] for shard in shards.written),
        )
        index = {
            "version": VERSION,
            "dtype": f"uint{8 * shards.dtype.itemsize}",
            "vocabulary_size": vocabulary_size,
            "max_source_length": max_source_length,
            "max_target_length": max_target_length,
            "counts": asdict(counts),
            "shards": shards.written,
        }
        text = json.dumps(index, indent=2) + "\n"
        (temporary / INDEX).write_text(text, encoding="utf-8")
    return counts


class _Shards:
    """Buffers pairs and appends them to the open shard; starts the next when one is full."""

    def __init__(self, directory: Path, shard_pairs: int, vocabulary_size: int | None) -> None:
        self.written: list[dict[str, int]] = []
        self.dtype = id_dtype(vocabulary_size)
        self._directory = directory
        self._shard_pairs = shard_pairs
        self._limit = vocabulary_size
        self._buffers: tuple[list[Sequence[int]], list[Sequence[int]]] = ([], [])
        self._buffered = 0
        self._files: list[BinaryIO] = []
        self._pairs = 0
        self._tokens = [0, 0]

    def __enter__(self) -> "_Shards":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._flush()
                self._close()
        finally:
            for file in self._files:
                file.close()

    def add(self, source: Sequence[int], target: Sequence[int]) -> None:
        sources, targets = self._buffers
        more = len(source) + len(target)
        if sum(self._tokens) + self._buffered + more > SHARD_TOKENS:
            self._flush()
            self._close()
        sources.append(source)
        targets.append(target)
        self._buffered += more
        if self._pairs + len(sources) == self._shard_pairs:
            self._flush()
            self._close()
        elif self._buffered >= _BUFFER_TOKENS:
            self._flush()

    def _flush(self) -> None:
        if not self._buffers[0]:
            return
        if not self._files:
            self._open()
        for which, buffer in enumerate(self._buffers):
            lengths = np.fromiter(map(len, buffer), dtype=np.int64, count=len(buffer))
            ids = _flat(buffer, int(lengths.sum()))
            self._check(ids, SIDES[which])
            self._files[2 * which].write(ids.astype(self.dtype).tobytes())
            ends = self._tokens[which] + np.cumsum(lengths)
            self._files[2 * which + 1].write(ends.astype(OFFSET).tobytes())
            self._tokens[which] = int(ends[-1])
        self._pairs += len(self._buffers[0])
        for buffer in self._buffers:
            buffer.clear()
        self._buffered = 0

    def _check(self, ids: np.ndarray, side: str) -> None:
        limit = 2**32 if self._limit is None else self._limit
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= limit:
            wrong = low if low < 0 else high
            raise ValueError(
                f"A {side} has the id {wrong}; expected ids from 0 up to, not with, {limit}. "
                "Encode with the tokenizer whose vocabulary_size was given."
            )
        if low <= EOS and (reserved := {PAD, BOS, EOS}.intersection(ids[ids <= EOS].tolist())):
            raise ValueError(
                f"A {side} holds the reserved id {min(reserved)}; expected token ids without "
                "padding (0), begin (2) and end (3), which the batches add. Leave them out."
            )

    def _open(self) -> None:
        shard = len(self.written)
        for side in SIDES:
            for name in (ids_name(shard, side), offsets_name(shard, side)):
                self._files.append((self._directory / name).open("wb"))
            self._files[-1].write(np.zeros(1, OFFSET).tobytes())

    def _close(self) -> None:
        if not self._files:
            return
        for file in self._files:
            file.close()
        self._files = []
        source_tokens, target_tokens = self._tokens
        self.written.append(
            {"pairs": self._pairs, "source_tokens": source_tokens, "target_tokens": target_tokens}
        )
        self._pairs = 0
        self._tokens = [0, 0]


def _flat(buffer: list[Sequence[int]], count: int) -> np.ndarray:
    if all(isinstance(ids, np.ndarray) for ids in buffer):
        flat = np.concatenate(buffer)
        if not np.issubdtype(flat.dtype, np.integer):
            raise TypeError(f"Token ids must be integers, received an array of {flat.dtype}")
        return flat
    return np.fromiter(chain.from_iterable(buffer), dtype=np.int64, count=count)
