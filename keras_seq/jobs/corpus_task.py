"""The encoding task that each worker runs."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from keras_seq.data import TokenPair
from keras_seq.jobs.chunks import Chunk, Result, blocks
from keras_seq.preparation.encoding import CHUNK_PAIRS, Encoded, PairEncoder
from keras_seq.text import Example, tokenizer_from_bytes


@dataclass(frozen=True)
class EncodingTask:
    """Encodes chunks of sentence pairs as token ids; see `PairEncoder`.

    `source` and `target` are serialized tokenizers; `target` is None for a joint vocabulary.
    """

    source: bytes
    target: bytes | None
    max_lengths: tuple[int, int]

    @classmethod
    def of(cls, encoder: PairEncoder) -> EncodingTask:
        """Creates a task with the tokenizers and maximum lengths of `encoder`."""
        joint = encoder.source is encoder.target
        target = None if joint else encoder.target.to_bytes()
        return cls(encoder.source.to_bytes(), target, encoder.longest)

    def portable(self) -> EncodingTask:
        return self

    def start(self, threads: int) -> Callable[[Chunk], Result]:
        source = tokenizer_from_bytes(self.source)
        target = source if self.target is None else tokenizer_from_bytes(self.target)
        encoder = PairEncoder(source, target, *self.max_lengths)

        return lambda chunk: Result(pack(encoder.encode(_pairs(chunk.body))))


def pair_chunks(pairs: Iterable[Example]) -> Iterator[Chunk]:
    """Splits a sequence of sentence pairs into chunks."""
    first = 1
    sized = blocks(pairs, CHUNK_PAIRS, lambda pair: len(pair.source) + len(pair.target))
    for number, block in enumerate(sized):
        # JSON is deterministic, so equal chunks have equal keys.
        body = json.dumps(block, ensure_ascii=False, separators=(",", ":")).encode()
        where = f"training text, pairs {first:,} to {first + len(block) - 1:,}"
        yield Chunk(0, number, first, where, body)
        first += len(block)


def pack(encoded: Encoded) -> bytes:
    """Serializes encoded pairs."""
    links = [pair.links for pair in encoded.pairs]
    stream = io.BytesIO()
    np.savez(
        stream,
        source=_flat([pair.source for pair in encoded.pairs]),
        source_lengths=_lengths([pair.source for pair in encoded.pairs]),
        target=_flat([pair.target for pair in encoded.pairs]),
        target_lengths=_lengths([pair.target for pair in encoded.pairs]),
        weights=np.array([pair.weight for pair in encoded.pairs], np.float64),
        links=np.array([link for some in links for link in some], np.int32).reshape(-1, 2),
        link_counts=_lengths(links),
        words=np.array([encoded.linked, encoded.broken, encoded.lost], np.int64),
        example=np.frombuffer(json.dumps(encoded.example).encode(), np.uint8),
    )
    return stream.getvalue()


def unpack(body: bytes) -> Encoded:
    """Deserializes encoded pairs; the token ids are NumPy arrays."""
    with np.load(io.BytesIO(body), allow_pickle=False) as packed:
        arrays = {name: packed[name] for name in packed.files}
    links = iter(arrays["links"].tolist())
    pairs = [
        TokenPair(source, target, weight, tuple(map(tuple, itertools.islice(links, count))))
        for source, target, weight, count in zip(
            _split(arrays["source"], arrays["source_lengths"]),
            _split(arrays["target"], arrays["target_lengths"]),
            arrays["weights"].tolist(),
            arrays["link_counts"].tolist(),
            strict=True,
        )
    ]
    example = json.loads(arrays["example"].tobytes())
    linked, broken, lost = arrays["words"].tolist()
    return Encoded(pairs, linked, broken, lost, tuple(example) if example else None)


def _pairs(body: bytes) -> list[Example]:
    return [
        Example(source, target, weight, tuple((one, other) for one, other in links), target_only)
        for source, target, weight, links, target_only in json.loads(body)
    ]


def _lengths(rows: Sequence[Sequence]) -> np.ndarray:
    return np.array([len(row) for row in rows], np.int64)


def _flat(rows: Sequence[Sequence[int]]) -> np.ndarray:
    return np.fromiter(itertools.chain.from_iterable(rows), np.int32)


def _split(flat: np.ndarray, lengths: np.ndarray) -> list[Any]:
    return np.split(flat, np.cumsum(lengths)[:-1])
