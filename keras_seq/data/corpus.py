"""A memory-mapped corpus of token ids."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keras_seq.data.checked_shards import check_characters, check_ids, check_links, check_weights
from keras_seq.data.corpus_files import map_array, map_offsets, read_index
from keras_seq.data.layout import INDEX, SHARD_TOKENS, SIDES, WEIGHT, Part, shard_file
from keras_seq.data.writing import CorpusCounts
from keras_seq.text import InputError


class TokenCorpus:
    """Pairs of token ids on disk, which may exceed memory.

    `write_corpus` writes a corpus, `TokenCorpus.open` opens it. Only the lengths are in memory,
    eight bytes per pair; the ids are memory-mapped.

    Attributes:
        directory: Its path.
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
        directory: Path,
        counts: CorpusCounts,
        max_lengths: tuple[int, int],
        ids: dict[Part, list[np.ndarray]],
        offsets: dict[Part, list[np.ndarray]],
        weights: list[np.ndarray] | None = None,
        links: tuple[list[np.ndarray], list[np.ndarray]] | None = None,
        packed: bool = False,
        token_features: int = 0,
    ) -> None:
        self.directory = directory
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
        size than `corpus.json` says, or if a sequence is longer than it says.
        """
        path = Path(directory)
        index = read_index(path / INDEX)
        dtypes: dict[Part, np.dtype] = dict.fromkeys(SIDES, index["dtype"])
        if index["features"]:
            dtypes["features"] = index["features"]
        ids: dict[Part, list[np.ndarray]] = {part: [] for part in dtypes}
        offsets: dict[Part, list[np.ndarray]] = {part: [] for part in dtypes}
        weights: list[np.ndarray] = []
        links: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        longest_source, longest_target = index["max_lengths"]
        per_token = index["token_features"]
        bounds = {
            "source": (0 if index["target_only"] else 1, longest_source),
            "target": (1, longest_target),
            "features": (0, per_token * longest_source or SHARD_TOKENS),
        }
        for number, shard in enumerate(index["shards"]):
            pairs = shard["pairs"]
            prefix = path / shard_file(number, "")
            for part, dtype in dtypes.items():
                count, lengths = shard[part], bounds[part]
                offsets[part].append(map_offsets(f"{prefix}{part}.offsets", pairs, count, lengths))
                ids[part].append(map_array(f"{prefix}{part}.ids", dtype, count))
            if index["weights"]:
                weights.append(map_array(f"{prefix}weights", WEIGHT, pairs))
            if index["links"]:
                count = shard["links"]
                links[1].append(
                    map_offsets(f"{prefix}links.offsets", pairs, count, (0, SHARD_TOKENS))
                )
                mapped = map_array(f"{prefix}links", index["links"], 2 * count)
                links[0].append(mapped.reshape(-1, 2))
        return cls(
            path,
            index["counts"],
            index["max_lengths"],
            ids,
            offsets,
            weights if index["weights"] else None,
            links if index["links"] else None,
            index["packed"],
            index["token_features"],
        )

    def check(
        self,
        sizes: tuple[int, int],
        max_lengths: tuple[int, int],
        token_features: int | None = None,
    ) -> None:
        """Checks the ids, lengths, links and weights of a corpus, which may come from anywhere.

        Reads each file once, as the first epoch does.

        Args:
            sizes: Sizes of the vocabularies of sources and of targets.
            max_lengths: The most tokens of a source and of a target.
            token_features: Features of each source token; None for a corpus without features.

        Raises:
            InputError: The corpus has no pairs; a sequence is too long; a pair lacks its features,
                or a token to which it has a link; an id is that of padding or not in its
                vocabulary; or a weight is negative or not finite.
        """
        if not len(self):
            raise InputError(f"{self.directory}: no pairs, expected at least one")
        for side, size, longest in zip(SIDES, sizes, max_lengths, strict=True):
            if (found := int(self._lengths[side].max())) > longest:
                raise InputError(
                    f"{self.directory}: a {side} of {found:,} tokens, expected at most {longest:,} "
                    "as the settings of the run say"
                )
            for number, ids in enumerate(self._ids[side]):
                check_ids(self._file(number, f"{side}.ids"), ids, size)
        self._check_features(token_features)
        for number, weights in enumerate(self._weights):
            check_weights(self._file(number, "weights"), weights)
        for number, links in enumerate(self._links):
            pairs = slice(self._first[number], self._first[number + 1])
            lengths = self.source_lengths[pairs], self.target_lengths[pairs]
            check_links(self._file(number, "links"), links, self._link_offsets[number], lengths)

    def _check_features(self, expected: int | None) -> None:
        found = self.token_features if self.has_features else None
        if found != expected:
            raise InputError(
                f"{self.directory}: {_shown(found)}, the settings of the run expect "
                f"{_shown(expected)}"
            )
        if expected and (self._lengths["features"] != expected * self.source_lengths).any():
            raise InputError(
                f"{self.directory}: a pair without {expected} features for each source token"
            )
        if expected:
            for number, features in enumerate(self._ids["features"]):
                check_characters(self._file(number, "features.ids"), features)

    def _file(self, shard: int, kind: str) -> str:
        return str(self.directory / shard_file(shard, kind))

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


def _shown(token_features: int | None) -> str:
    return "no features" if token_features is None else f"{token_features:,} features of a token"


def _lengths(offsets: list[np.ndarray]) -> np.ndarray:
    empty = np.zeros(0, np.int32)
    return np.concatenate([empty, *(np.diff(shard).astype(np.int32) for shard in offsets)])
