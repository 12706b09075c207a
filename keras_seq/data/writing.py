"""Writes a stream of token pairs to the shards of a corpus."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from keras_seq.data.flattening import checked_weights, flat_ids, flat_links, lengths_of
from keras_seq.data.layout import (
    INDEX,
    OFFSET,
    SHARD_TOKENS,
    SIDES,
    VERSION,
    id_dtype,
    shard_file,
)
from keras_seq.storage import atomic_directory
from keras_seq.text import BOS_ID, EOS_ID, PAD_ID

# The largest weight that float32 rounds to 0.
_ZERO_WEIGHT = 2.0**-150
# Tokens in memory as Python objects before they are written: about ten megabytes.
_BUFFER_TOKENS = 2**18


class TokenPair(NamedTuple):
    """Token ids of a source and its target, with an optional weight and alignment.

    The ids are lists or 1-D integer arrays without begin and end tokens. The weight in the loss is
    finite and not negative; a pair of weight 2 counts like two equal pairs. `links` are pairs
    `(source token, target token)`, counted from 0. `features` are ids that describe the whole pair,
    or equally many ids for each source token.
    """

    source: Sequence[int]
    target: Sequence[int]
    weight: float = 1.0
    links: Sequence[tuple[int, int]] = ()
    features: Sequence[int] = ()


@dataclass(frozen=True)
class CorpusCounts:
    """Numbers of pairs that `write_corpus` kept and dropped, and of tokens in kept pairs.

    Pairs are dropped if source or target is empty or too long, or if the weight is 0.
    """

    kept: int
    dropped_empty: int
    dropped_long: int
    source_tokens: int
    target_tokens: int
    dropped_weightless: int = 0


def write_corpus(
    directory: str | os.PathLike[str],
    pairs: Iterable[tuple[Sequence[int], Sequence[int]] | TokenPair],
    *,
    max_source_length: int,
    max_target_length: int,
    shard_pairs: int = 1_000_000,
    vocabulary_size: int | None = None,
    weights: bool = False,
    alignments: bool = False,
    target_only: bool = False,
    packed: bool = False,
    features: bool = False,
    token_features: int = 0,
) -> CorpusCounts:
    """Writes pairs of token ids to a directory for `TokenCorpus.open`.

    The pairs are consumed as a stream, so memory does not grow with the corpus. Pairs with an empty
    side or a side above its maximum length are dropped and counted; if weights are stored, so are
    pairs of weight 0. The directory appears atomically; a failed write leaves nothing.

    Args:
        directory: Path of a directory that does not exist or is empty.
        pairs: Iterable of `TokenPair`, or of `(source ids, target ids)`.
        max_source_length, max_target_length: Positive integers, in tokens.
        shard_pairs: Positive integer, the number of pairs per shard.
        vocabulary_size: Optional positive integer above every id of both sides. Ids take two bytes
            on disk if it is at most 65,536, else four.
        weights: Boolean, whether to store the weights of the pairs, four bytes per pair. Otherwise
            weights are ignored.
        alignments: Boolean, whether to store the links between tokens.
        target_only: Boolean, whether the corpus has targets only, as for a language model. Pairs
            with an empty source are then kept.
        packed: Boolean, whether targets are segments from `pack`. Batches add no end token to
            packed targets.
        features: Boolean, whether to store the features of the pairs.
        token_features: Non-negative integer F. If positive, a pair has F features for each source
            token, and they may be any numbers below 2 ** 32.

    Returns:
        The `CorpusCounts`, which are also stored in the corpus.

    Raises:
        ValueError: A number is not positive; a kept pair has an id outside `[0, vocabulary_size)`
            or a reserved id 0 (padding), 2 (begin) or 3 (end), which batches add; a weight is
            negative or not finite; a link refers to a token that the pair lacks; or a pair has
            another number of features than `token_features` says.
        InputError: `directory` exists and is not empty.

    Example:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     counts = write_corpus(f"{directory}/corpus", [([5, 6], [7]), ([], [8])],
    ...                           max_source_length=10, max_target_length=10)
    >>> counts.kept, counts.dropped_empty, counts.source_tokens
    (1, 1, 2)
    """
    _check_positive(
        max_source_length=max_source_length,
        max_target_length=max_target_length,
        shard_pairs=shard_pairs,
        vocabulary_size=1 if vocabulary_size is None else vocabulary_size,
    )
    with atomic_directory(directory) as temporary:
        longest = max(max_source_length, max_target_length)
        links = np.dtype("<u2" if longest <= 2**16 else "<u4") if alignments else None
        stored = _Stored(weights, links, features, token_features)
        with _Shards(temporary, shard_pairs, vocabulary_size, stored, packed) as shards:
            dropped_empty = dropped_long = dropped_weightless = 0
            for fields in pairs:
                pair = TokenPair(*fields)
                if (len(pair.source) == 0 and not target_only) or len(pair.target) == 0:
                    dropped_empty += 1
                elif len(pair.source) > max_source_length or len(pair.target) > max_target_length:
                    dropped_long += 1
                elif weights and 0 <= pair.weight <= _ZERO_WEIGHT:
                    dropped_weightless += 1
                else:
                    shards.add(pair)
        kept, source_tokens, target_tokens = (
            sum(shard[key] for shard in shards.written)
            for key in ("pairs", "source_tokens", "target_tokens")
        )
        counts = CorpusCounts(
            kept, dropped_empty, dropped_long, source_tokens, target_tokens, dropped_weightless
        )
        index = {
            "version": VERSION,
            "dtype": f"uint{8 * shards.dtype.itemsize}",
            "vocabulary_size": vocabulary_size,
            "max_source_length": max_source_length,
            "max_target_length": max_target_length,
            "weights": weights,
            "links": None if links is None else f"uint{8 * links.itemsize}",
            "sourceless": target_only,
            "packed": packed,
            "features": None if not features else f"uint{8 * shards.feature_dtype.itemsize}",
            "token_features": token_features,
            "counts": asdict(counts),
            "shards": shards.written,
        }
        (temporary / INDEX).write_text(json.dumps(index, indent=2) + "\n", "utf-8", newline="\n")
    return counts


def _check_positive(**values: int) -> None:
    for name, value in values.items():
        if value < 1:
            raise ValueError(f"{name} must be a positive integer, received {value!r}")


class _Stored(NamedTuple):
    """Selects what a corpus stores besides token ids, as the arguments of `write_corpus`.

    `links` is the type of stored links, or None.
    """

    weights: bool
    links: np.dtype | None
    features: bool
    token_features: int


class _Shards:
    """Buffers pairs, appends them to the open shard, and starts a new shard when it is full."""

    def __init__(
        self,
        directory: Path,
        shard_pairs: int,
        vocabulary_size: int | None,
        stored: _Stored,
        packed: bool,
    ) -> None:
        self._directory, self._shard_pairs = directory, shard_pairs
        self._limit, self.dtype = vocabulary_size or 2**32, id_dtype(vocabulary_size)
        self._stored = stored
        self.feature_dtype = id_dtype(None) if stored.token_features else self.dtype
        self._reserved = {PAD_ID} if packed else {PAD_ID, BOS_ID, EOS_ID}
        # The entries of the finished shards in `corpus.json`.
        self.written: list[dict[str, int]] = []
        self._buffer: list[TokenPair] = []
        # Tokens and links in the buffer.
        self._buffered = 0
        # Files, pairs, tokens and links of the open shard.
        self._files: dict[str, BinaryIO] = {}
        self._pairs = 0
        self._totals = {"source": 0, "target": 0, "links": 0, "features": 0}

    def __enter__(self) -> "_Shards":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._finish_shard()
        finally:
            for file in self._files.values():
                file.close()

    def add(self, pair: TokenPair) -> None:
        size = len(pair.source) + len(pair.target) + len(pair.links) + len(pair.features)
        if sum(self._totals.values()) + self._buffered + size > SHARD_TOKENS:
            self._finish_shard()
        self._buffer.append(pair)
        self._buffered += size
        if self._pairs + len(self._buffer) == self._shard_pairs:
            self._finish_shard()
        elif self._buffered >= _BUFFER_TOKENS:
            self._flush()

    def _flush(self) -> None:
        if not self._buffer:
            return
        sources, targets, weights, links, features = zip(*self._buffer, strict=True)
        lengths = {}
        for side, buffer in zip(SIDES, (sources, targets), strict=True):
            lengths[side] = lengths_of(buffer)
            ids = flat_ids(buffer, int(lengths[side].sum()))
            self._check(ids, side)
            self._write(f"{side}.ids", ids.astype(self.dtype))
            self._write_offsets(side, lengths[side])
        if self._stored.weights:
            self._write("weights", checked_weights(weights))
        if self._stored.links is not None:
            flat = flat_links(links, lengths["source"], lengths["target"])
            self._write("links", flat.astype(self._stored.links))
            self._write_offsets("links", lengths_of(links))
        if self._stored.features:
            self._write_features(features, lengths["source"])
        self._pairs += len(self._buffer)
        self._buffer.clear()
        self._buffered = 0

    def _write_features(
        self, features: Sequence[Sequence[int]], source_lengths: np.ndarray
    ) -> None:
        lengths = lengths_of(features)
        ids = flat_ids(features, int(lengths.sum()))
        per_token = self._stored.token_features
        if not per_token:
            self._check(ids, "feature")
        elif (lengths != per_token * source_lengths).any():
            row = int(np.argmax(lengths != per_token * source_lengths))
            raise ValueError(
                f"A pair of {source_lengths[row]} source tokens has {lengths[row]} features; "
                f"expected {per_token} for each token."
            )
        self._write("features.ids", ids.astype(self.feature_dtype))
        self._write_offsets("features", lengths)

    def _write(self, kind: str, values: np.ndarray) -> None:
        if kind not in self._files:
            path = self._directory / shard_file(len(self.written), kind)
            self._files[kind] = path.open("wb")
        self._files[kind].write(values.tobytes())

    def _write_offsets(self, key: str, lengths: np.ndarray) -> None:
        kind = f"{key}.offsets"
        ends = self._totals[key] + np.cumsum(lengths)
        self._totals[key] = int(ends[-1])
        if kind not in self._files:
            ends = np.insert(ends, 0, 0)
        self._write(kind, ends.astype(OFFSET))

    def _check(self, ids: np.ndarray, side: str) -> None:
        if not len(ids):
            return
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high >= self._limit:
            wrong = low if low < 0 else high
            raise ValueError(
                f"A {side} has the id {wrong}; expected ids from 0 up to, not with, {self._limit}. "
                "Encode with the tokenizer whose vocabulary_size was given."
            )
        reserved = self._reserved.intersection(ids[ids <= EOS_ID].tolist())
        if reserved:
            raise ValueError(
                f"A {side} holds the reserved id {min(reserved)}; expected token ids without "
                "padding (0), begin (2) and end (3), which the batches add. Leave them out."
            )

    def _finish_shard(self) -> None:
        self._flush()
        if not self._files:
            return
        for file in self._files.values():
            file.close()
        self._files = {}
        shard = {
            "pairs": self._pairs,
            "source_tokens": self._totals["source"],
            "target_tokens": self._totals["target"],
        }
        if self._stored.links is not None:
            shard["links"] = self._totals["links"]
        if self._stored.features:
            shard["features"] = self._totals["features"]
        self.written.append(shard)
        self._pairs = 0
        self._totals = dict.fromkeys(self._totals, 0)
