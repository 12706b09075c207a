"""Subword regularization: samples segmentations of words."""

from __future__ import annotations

import heapq
import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

import numpy as np

from .normalization import SPACE_MARK
from .tokenizer import Tokenizer

# The sampling of SentencePiece uses one global generator, which a resumed run could not restore.
Numbers = Iterator[float]
Ids = tuple[int, ...]

# Cache size: total number of pieces in the segmentations of all words, about 100 MB.
_CACHE_PIECES = 2_000_000


class SubwordSampling(Protocol):
    """Samples segmentations of words.

    `begins` `(V,)` is True for tokens that begin a word. `fixed` `(V,)` is True for tokens that are
    never resegmented, such as bytes.
    """

    begins: np.ndarray
    fixed: np.ndarray

    def sample(self, words: Sequence[Ids], numbers: Numbers) -> list[Sequence[int]]:
        """Samples a segmentation of each word of a line.

        `words` are the token ids of each word, without fixed tokens; `numbers` yields enough random
        numbers in [0, 1).
        """


def subword_sampling(tokenizer: Tokenizer, alpha: float, nbest: int = -1) -> SubwordSampling:
    """Builds the sampling for a vocabulary: `BpeDropout` for BPE, else `UnigramSampling`.

    For BPE, `alpha` is the probability of skipping a merge, and `nbest` is ignored. Otherwise
    `alpha` is the exponent of the probabilities (the smaller, the more uniform), and samples are
    from the `nbest` most likely segmentations of a line, or from all if `nbest` is -1.
    """
    if tokenizer.kind == "bpe":
        return BpeDropout(tokenizer, alpha)
    return UnigramSampling(tokenizer, alpha, nbest)


class UnigramSampling:
    """Samples segmentations from a unigram model with exponent `alpha`.

        P(x) = exp(alpha s(x)) / sum over segmentations y of exp(alpha s(y))
        s(x) = sum over the pieces of x of log p(piece)

    Example:

    >>> tokenizer = Tokenizer.train(["low lower lowest new newer newest"] * 9, size=300)
    >>> sampling = UnigramSampling(tokenizer, 0.2, nbest=4)
    >>> words = [tuple(tokenizer.encode([word])[0]) for word in ("lower", "newer")]
    >>> samples = [sampling.sample(words, iter([number])) for number in (0.0, 0.4, 0.9)]
    >>> [tokenizer.decode(sample) for sample in samples]
    [['lower', 'newer'], ['lower', 'newer'], ['lower', 'newer']]
    >>> len(set(map(str, samples)))
    3

    Reference:
        Kudo, "Subword regularization: improving neural network translation models with
        multiple subword candidates", ACL 2018, https://arxiv.org/abs/1804.10959
    """

    def __init__(self, tokenizer: Tokenizer, alpha: float, nbest: int = -1) -> None:
        if not alpha > 0:
            raise ValueError(f"alpha must be above 0, received {alpha!r}")
        if nbest != -1 and nbest < 1:
            raise ValueError(f"nbest must be a positive integer or -1 for all, received {nbest!r}")
        self.begins, self.fixed = _token_flags(tokenizer)
        self._alpha = alpha
        self._nbest = nbest
        pieces = tokenizer.pieces
        self._texts = [piece.text for piece in pieces]
        self._pieces = {p.text: (id, p.score) for id, p in enumerate(pieces) if p.is_text}
        self._longest = max(map(len, self._pieces), default=0)
        self._cache: dict[Ids, Any] = {}
        self._cached_pieces = 0

    def sample(self, words: Sequence[Ids], numbers: Numbers) -> list[Sequence[int]]:
        if self._nbest == -1:
            return [self._segmentations(word).sample(numbers) for word in words]
        lists = [self._segmentations(word) for word in words]
        indices = _sample_nbest(lists, self._nbest, self._alpha, numbers)
        return [nbest.ids[index] for nbest, index in zip(lists, indices, strict=True)]

    def _segmentations(self, word: Ids) -> Any:
        """Returns the `_Lattice` of a word, or its `_NBest` if `nbest` is not -1."""
        if word not in self._cache:
            edges = self._edges(word)
            best = _find_nbest(edges, self._nbest) if self._nbest != -1 else None
            pieces = sum(map(len, edges if best is None else best.ids))
            self._cached_pieces += pieces
            if self._cached_pieces > _CACHE_PIECES:
                self._cache, self._cached_pieces = {}, pieces
            self._cache[word] = best or _Lattice(edges, self._alpha)
        return self._cache[word]

    def _edges(self, word: Ids) -> _Edges:
        text = "".join(self._texts[id] for id in word)
        edges: _Edges = [[] for _ in text]
        for begin in range(len(text)):
            for end in range(begin + 1, min(begin + self._longest, len(text)) + 1):
                piece = self._pieces.get(text[begin:end])
                if piece is not None:
                    edges[end - 1].append((begin, *piece))
        return edges


class BpeDropout:
    """Applies the merges of BPE, but skips random merges.

    Each step drops each possible merge with probability `dropout` (0.1 in the paper) and applies
    the first remaining merge, until no merge remains.

    Example:

    >>> tokenizer = Tokenizer.train(["low lower lowest"] * 9, size=290, kind="bpe")
    >>> dropout, word = BpeDropout(tokenizer, 0.1), tuple(tokenizer.encode(["low"])[0])
    >>> dropout.sample([word], iter([0.5] * 9)) == [list(word)]
    True
    >>> [ids] = dropout.sample([word], iter([0.05, 0.05, 0.05]))
    >>> [tokenizer.pieces[id].text for id in ids]
    ['▁', 'l', 'o', 'w']

    Reference:
        Provilkov, Emelianenko and Voita, "BPE-Dropout: simple and effective subword
        regularization", ACL 2020, algorithm 1, https://arxiv.org/abs/1910.13267
    """

    def __init__(self, tokenizer: Tokenizer, dropout: float) -> None:
        if not 0 < dropout < 1:
            raise ValueError(f"dropout must be above 0 and below 1, received {dropout!r}")
        self.begins, self.fixed = _token_flags(tokenizer)
        pieces = tokenizer.pieces
        self._texts = [piece.text for piece in pieces]
        self._pieces = {p.text: (-p.score, id) for id, p in enumerate(pieces) if p.is_text}
        self._dropout = dropout

    def sample(self, words: Sequence[Ids], numbers: Numbers) -> list[Sequence[int]]:
        return [self._merge(word, numbers) for word in words]

    def _merge(self, word: Ids, numbers: Numbers) -> Sequence[int]:
        pieces, dropout = self._pieces, self._dropout
        symbols = list("".join([self._texts[id] for id in word]))
        if not all(symbol in pieces for symbol in symbols):
            # An imported vocabulary may lack the characters that its merges need.
            return word
        while True:
            merges = []
            for position in range(len(symbols) - 1):
                piece = pieces.get(symbols[position] + symbols[position + 1])
                if piece is not None:
                    merges.append((piece[0], position))
            # Only the first merge that is not dropped is made, so later merges need no number.
            heapq.heapify(merges)
            while merges:
                _, position = heapq.heappop(merges)
                if next(numbers) >= dropout:
                    symbols[position : position + 2] = [symbols[position] + symbols[position + 1]]
                    break
            else:
                return [pieces[symbol][1] for symbol in symbols]


def _token_flags(tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray]:
    begins = np.array([piece.text.startswith(SPACE_MARK) for piece in tokenizer.pieces])
    return begins, np.array([not piece.is_text for piece in tokenizer.pieces])


# For each end position in a word, the pieces that end there: start, id, score.
_Edges = list[list[tuple[int, int, float]]]


class _Lattice:
    """All segmentations of a word, sampled from the last piece to the first."""

    def __init__(self, edges: _Edges, alpha: float) -> None:
        # Log of the summed weights of all segmentations up to each position.
        total = [0.0]
        self._steps: list[tuple[list[float], list[tuple[int, int]]]] = []
        for ending in edges:
            scores = [total[begin] + alpha * score for begin, _, score in ending]
            top = max(scores, default=-math.inf)
            if top == -math.inf:
                total.append(top)
                self._steps.append(([], []))
                continue
            total.append(top + math.log(sum(math.exp(score - top) for score in scores)))
            self._steps.append((_bounds(scores), [(begin, id) for begin, id, _ in ending]))

    def sample(self, numbers: Numbers) -> list[int]:
        ids = []
        position = len(self._steps)
        while position:
            bounds, pieces = self._steps[position - 1]
            position, id = pieces[bisect(bounds, next(numbers)) if bounds else 0]
            ids.append(id)
        ids.reverse()
        return ids


class _NBest(NamedTuple):
    """The n best segmentations of a word, best first.

    `losses` is the difference of each log-probability from the best, ascending from 0; `gap` is the
    second loss, or infinity if there is only one segmentation.
    """

    ids: list[Ids]
    losses: np.ndarray
    gap: float


def _find_nbest(edges: _Edges, nbest: int) -> _NBest:
    # Score and ids of the best segmentations up to each position, best first.
    best: list[list[tuple[float, Ids]]] = [[(0.0, ())]]
    for ending in edges:
        candidates = [
            (score + more, (*ids, id)) for begin, id, more in ending for score, ids in best[begin]
        ]
        # Ties are sorted by ids, so that the result does not depend on the order of a dictionary.
        candidates.sort(key=lambda candidate: (-candidate[0], candidate[1]))
        best.append(candidates[:nbest])
    scores = np.array([score for score, _ in best[-1]])
    losses = scores[0] - scores
    gap = float(losses[1]) if len(losses) > 1 else math.inf
    return _NBest([ids for _, ids in best[-1]], losses, gap)


def _sample_nbest(lists: Sequence[_NBest], nbest: int, alpha: float, numbers: Numbers) -> list[int]:
    """Samples one of the n best segmentations of a line; returns an index for each word."""
    losses = np.zeros(1)
    # For each word: indices of the preceding combinations, and indices into its list.
    backpointers: list[tuple[int, np.ndarray, np.ndarray]] = []
    # Visit words in order of the gap between their two best segmentations. Once a gap exceeds all
    # n best losses, the remaining words keep their best segmentation.
    for word in sorted(range(len(lists)), key=lambda word: lists[word].gap):
        candidates = lists[word]
        full = len(losses) == nbest
        if candidates.gap == math.inf or (full and candidates.gap >= losses[-1]):
            break
        useful = len(candidates.losses)
        if full:
            useful = int(np.searchsorted(candidates.losses, losses[-1]))
        combined = (losses[:, None] + candidates.losses[:useful]).ravel()
        best = np.argsort(combined, kind="stable")[:nbest]
        losses = combined[best]
        backpointers.append((word, *np.divmod(best, useful)))
    combination = bisect(_bounds((-alpha * losses).tolist()), next(numbers))
    result = [0] * len(lists)
    for word, previous, index in reversed(backpointers):
        result[word] = int(index[combination])
        combination = int(previous[combination])
    return result


def _bounds(scores: list[float]) -> list[float]:
    """Cumulative softmax of the scores, without the last bound of 1."""
    top = max(scores)
    shares = [math.exp(score - top) for score in scores]
    total = sum(shares)
    return [end / total for end in accumulate(shares[:-1])]
