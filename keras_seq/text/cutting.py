"""Lines cut into other subwords than the most likely ones, drawn by chance.

Subwords never cross a space, so what can become of a word is worked out once and kept.
Chance comes in as numbers: what is drawn depends on them alone. SentencePiece's own sampling
draws from one generator of the process, so that a training could not go on as it would have.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

import numpy as np

from .tokenizer import Tokenizer

Numbers = Iterator[float]
Ids = tuple[int, ...]

# Pieces of words, over all words and ways to cut them, that are kept: some 100 MB.
_KEPT_PIECES = 2_000_000


class SubwordSampling(Protocol):
    """Ways to cut the words of a vocabulary.

    Attributes:
        begins: Boolean array `(V,)`, whether a token begins a word.
        fixed: Boolean array `(V,)`, whether a token stands for itself always, such as a byte.
    """

    begins: np.ndarray
    fixed: np.ndarray

    def cut(self, words: Sequence[Ids], numbers: Numbers) -> list[Sequence[int]]:
        """Draws a way to cut each word of a line.

        Args:
            words: The words as tokens, none of which is fixed.
            numbers: Random numbers in [0, 1), as many as are asked for.
        """


def subword_sampling(tokenizer: Tokenizer, alpha: float, nbest: int = -1) -> SubwordSampling:
    """The drawing that goes with a vocabulary.

    Args:
        tokenizer: The vocabulary.
        alpha: Positive number. For a unigram vocabulary the power of the probabilities:
            the smaller, the more even. For a BPE vocabulary the share of merges left out.
        nbest: For a unigram vocabulary the number of ways to cut a line to draw from,
            the most likely ones; -1 for all. No matter for BPE.

    Raises:
        ValueError: If a number is out of range.
    """
    if tokenizer.kind == "bpe":
        return BpeDropout(tokenizer, alpha)
    return UnigramSampling(tokenizer, alpha, nbest)


class UnigramSampling:
    """Draws ways to cut a line by their probability to the power of `alpha`.

        P(x) = exp(alpha s(x)) / sum over the ways y of exp(alpha s(y))
        s(x) = sum over the pieces of x of log p(piece)

    Args:
        tokenizer: One of kind `"unigram"`.
        alpha: Positive number, the exponent.
        nbest: Positive integer, the number of ways to cut a line that are drawn from,
            the most likely ones; or -1 for all.

    Raises:
        ValueError: If a number is out of range.

    Example:

    >>> tokenizer = Tokenizer.train(["low lower lowest new newer newest"] * 9, size=300)
    >>> sampling = UnigramSampling(tokenizer, 0.2, nbest=4)
    >>> words = [tuple(tokenizer.encode([word])[0]) for word in ("lower", "newer")]
    >>> ways = [sampling.cut(words, iter([number])) for number in (0.0, 0.4, 0.9)]
    >>> [tokenizer.decode(way) for way in ways]
    [['lower', 'newer'], ['lower', 'newer'], ['lower', 'newer']]
    >>> len(set(map(str, ways)))
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
        self.begins, self.fixed = _kinds(tokenizer)
        self._alpha = alpha
        self._nbest = nbest
        self._texts = [piece.text for piece in tokenizer.pieces]
        self._pieces = {
            piece.text: (id, piece.score)
            for id, piece in enumerate(tokenizer.pieces)
            if piece.is_text
        }
        self._longest = max(map(len, self._pieces), default=0)
        self._lattices: dict[Ids, _Lattice] = {}
        self._lists: dict[Ids, _Ways] = {}
        self._kept = 0

    def cut(self, words: Sequence[Ids], numbers: Numbers) -> list[Sequence[int]]:
        """Draws a way to cut each word of a line; see `SubwordSampling`."""
        if self._nbest == -1:
            return [self._lattice(word).draw(numbers) for word in words]
        lists = [self._ways(word) for word in words]
        chosen = _choose(lists, self._nbest, self._alpha, numbers)
        return [ways.ids[place] for ways, place in zip(lists, chosen, strict=True)]

    def _lattice(self, word: Ids) -> _Lattice:
        lattice = self._lattices.get(word)
        if lattice is None:
            edges = self._edges(word)
            lattice = _Lattice(edges, self._alpha)
            self._make_room(sum(map(len, edges)))
            self._lattices[word] = lattice
        return lattice

    def _ways(self, word: Ids) -> _Ways:
        ways = self._lists.get(word)
        if ways is None:
            ways = _best_ways(self._edges(word), self._nbest)
            self._make_room(sum(map(len, ways.ids)))
            self._lists[word] = ways
        return ways

    def _make_room(self, pieces: int) -> None:
        self._kept += pieces
        if self._kept > _KEPT_PIECES:
            # Frequent words are soon back.
            self._lattices, self._lists, self._kept = {}, {}, pieces

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
    """Merges the characters of a word as BPE does, now and then leaving a merge out.

    In each step every merge that is possible is left out with probability `dropout`, and the
    first in order of those that remain is made, until none remains.

    Args:
        tokenizer: One of kind `"bpe"`.
        dropout: Number above 0 and below 1; the paper's is 0.1.

    Raises:
        ValueError: If `dropout` is out of range.

    Example:

    >>> tokenizer = Tokenizer.train(["low lower lowest"] * 9, size=290, kind="bpe")
    >>> dropout, word = BpeDropout(tokenizer, 0.1), tuple(tokenizer.encode(["low"])[0])
    >>> dropout.cut([word], iter([0.5] * 9)) == [list(word)]
    True
    >>> [ids] = dropout.cut([word], iter([0.05, 0.05, 0.05]))
    >>> [tokenizer.pieces[id].text for id in ids]
    ['▁', 'l', 'o', 'w']

    Reference:
        Provilkov, Emelianenko and Voita, "BPE-Dropout: simple and effective subword
        regularization", ACL 2020, algorithm 1, https://arxiv.org/abs/1910.13267
    """

    def __init__(self, tokenizer: Tokenizer, dropout: float) -> None:
        if not 0 < dropout < 1:
            raise ValueError(f"dropout must be above 0 and below 1, received {dropout!r}")
        self.begins, self.fixed = _kinds(tokenizer)
        self._texts = [piece.text for piece in tokenizer.pieces]
        self._pieces = {
            piece.text: (-piece.score, id)
            for id, piece in enumerate(tokenizer.pieces)
            if piece.is_text
        }
        self._dropout = dropout

    def cut(self, words: Sequence[Ids], numbers: Numbers) -> list[Sequence[int]]:
        """Draws a way to cut each word of a line; see `SubwordSampling`."""
        return [self._merged(word, numbers) for word in words]

    def _merged(self, word: Ids, numbers: Numbers) -> Sequence[int]:
        pieces, dropout = self._pieces, self._dropout
        symbols = list("".join([self._texts[id] for id in word]))
        if not all(symbol in pieces for symbol in symbols):
            # A vocabulary of others, with a merge of what it has no token for.
            return word
        while True:
            possible = []
            for place in range(len(symbols) - 1):
                piece = pieces.get(symbols[place] + symbols[place + 1])
                if piece is not None:
                    possible.append((piece[0], place))
            # The first that remains is all that counts of the others, so no more are drawn for.
            heapq.heapify(possible)
            while possible:
                _, place = heapq.heappop(possible)
                if next(numbers) >= dropout:
                    symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]
                    break
            else:
                return [pieces[symbol][1] for symbol in symbols]


def _kinds(tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray]:
    begins = np.array([piece.text.startswith("\u2581") for piece in tokenizer.pieces])
    return begins, np.array([not piece.is_text for piece in tokenizer.pieces])


# For each place in a word but the first, the pieces that end there: begin, id, score.
_Edges = list[list[tuple[int, int, float]]]


class _Lattice:
    """All ways to cut a word: drawn from the last piece to the first."""

    def __init__(self, edges: _Edges, alpha: float) -> None:
        # The sum over all ways up to each place, as a logarithm.
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

    def draw(self, numbers: Numbers) -> list[int]:
        ids = []
        place = len(self._steps)
        while place:
            bounds, pieces = self._steps[place - 1]
            place, id = pieces[bisect(bounds, next(numbers)) if bounds else 0]
            ids.append(id)
        ids.reverse()
        return ids


class _Ways(NamedTuple):
    """The best ways to cut a word, and how much less likely than the best each is.

    Attributes:
        ids: The ways.
        losses: Float64 array, ascending from 0.
        gap: The second loss, infinite if there is one way only.
    """

    ids: list[Ids]
    losses: np.ndarray
    gap: float


def _best_ways(edges: _Edges, nbest: int) -> _Ways:
    # The best ways up to each place, as score and ids, best first.
    best: list[list[tuple[float, Ids]]] = [[(0.0, ())]]
    for ending in edges:
        ways = [
            (score + more, (*ids, id)) for begin, id, more in ending for score, ids in best[begin]
        ]
        # By ids where scores are equal, so that nothing hangs on the order of a dictionary.
        ways.sort(key=lambda way: (-way[0], way[1]))
        best.append(ways[:nbest])
    scores = np.array([score for score, _ in best[-1]])
    losses = scores[0] - scores
    gap = float(losses[1]) if len(losses) > 1 else math.inf
    return _Ways([ids for _, ids in best[-1]], losses, gap)


def _choose(lists: Sequence[_Ways], nbest: int, alpha: float, numbers: Numbers) -> list[int]:
    """Draws one of the best ways to cut all words together: a place in the list of each."""
    losses = np.zeros(1)
    taken: list[tuple[int, np.ndarray, np.ndarray]] = []
    # Words with a good second way first: soon the best ways are known not to need the others.
    for word in sorted(range(len(lists)), key=lambda word: lists[word].gap):
        ways = lists[word]
        full = len(losses) == nbest
        if ways.gap == math.inf or (full and ways.gap >= losses[-1]):
            break
        useful = len(ways.losses)
        if full:
            useful = int(np.searchsorted(ways.losses, losses[-1]))
        together = (losses[:, None] + ways.losses[:useful]).ravel()
        kept = np.argsort(together, kind="stable")[:nbest]
        losses = together[kept]
        taken.append((word, *np.divmod(kept, useful)))
    way = bisect(_bounds((-alpha * losses).tolist()), next(numbers))
    chosen = [0] * len(lists)
    for word, before, place in reversed(taken):
        chosen[word] = int(place[way])
        way = int(before[way])
    return chosen


def _bounds(scores: list[float]) -> list[float]:
    """Where in [0, 1) the share of each score but the last ends."""
    top = max(scores)
    shares = [math.exp(score - top) for score in scores]
    total = sum(shares)
    return [end / total for end in accumulate(shares[:-1])]
