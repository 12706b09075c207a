"""Translations as `keras-seq translate` writes them: as text, as a table, as objects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from keras_seq.inference.hypothesis import Hypothesis, written_lines
from keras_seq.text import Tokenizer

Format = Literal["text", "tsv", "jsonl"]
END = "</s>"
_ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_COLUMNS = ("line", "rank", "score", "truncated", "source", "translation")
# Of weights and scores in JSON: what float32 holds, nearly.
_DIGITS = 6


class Aligned(NamedTuple):
    """What the attention of a translation came to.

    Attributes:
        links: `(source word, target word)`, None where not asked for.
        weights: Float array `(T, S)`, None where not asked for.
        source: What the columns of the weights are of: pieces of the source, the end last.
    """

    links: Sequence[tuple[int, int]] | None = None
    weights: np.ndarray | None = None
    source: tuple[str, ...] = ()


class OutputFormat:
    r"""Writes translations of lines.

    Args:
        name: `"text"`: a translation a line, see `written_lines`. `"tsv"`: a table with a
            head, a translation a row; a backslash, tab or line end in a text is written as
            `\\`, `\t`, `\n` or `\r`. `"jsonl"`: an object for each line of the input.
        n_best: Translations of a line, at most.
        scores: Whether text has scores.
        links: Whether links between words are written.
        target_tokenizer: Names the tokens of an object, which has none without it.

    Example:

    >>> table = OutputFormat("tsv")
    >>> next(table.head()).split("\t")
    ['line', 'rank', 'score', 'truncated', 'source', 'translation']
    >>> print(*next(table.lines(7, "a\tb", [Hypothesis("c", -0.5, False)])).split("\t"))
    7 1 -0.5000 0 a\tb c
    """

    def __init__(
        self,
        name: Format = "text",
        *,
        n_best: int = 1,
        scores: bool = False,
        links: bool = False,
        target_tokenizer: Tokenizer | None = None,
    ) -> None:
        self._name = name
        self._n_best = n_best
        self._scores = scores
        self._links = links
        self._tokenizer = target_tokenizer

    def head(self) -> Iterator[str]:
        """What comes before all lines."""
        if self._name == "tsv":
            yield "\t".join([*_COLUMNS, *(["alignment"] if self._links else [])])

    def lines(
        self,
        number: int,
        source: str,
        found: Sequence[Hypothesis],
        aligned: Sequence[Aligned] | None = None,
    ) -> Iterator[str]:
        """What is written for one line.

        Args:
            number: Of the line, from 1.
            source: The line.
            found: Its translations, best first; none where it is blank.
            aligned: For each translation what its attention came to.
        """
        every = aligned or [Aligned()] * len(found)
        if self._name == "jsonl":
            yield self._object(number, source, found, every)
        elif self._name == "tsv":
            yield from self._rows(number, source, found, every)
        else:
            written = written_lines([list(found)], number, n_best=self._n_best, scores=self._scores)
            for text, one in zip(written, every or [Aligned()], strict=True):
                yield text if one.links is None else f"{text} ||| {_pharaoh(one.links)}"

    def _rows(
        self, number: int, source: str, found: Sequence[Hypothesis], every: Sequence[Aligned]
    ) -> Iterator[str]:
        links = [""] if self._links else []
        if not found:
            # So that no line of the input is missing.
            yield "\t".join([str(number), "1", "", "0", source.translate(_ESCAPED), "", *links])
        for rank, (one, aligned) in enumerate(zip(found, every, strict=True), 1):
            if self._links:
                links = [_pharaoh(aligned.links or ())]
            texts = [text.translate(_ESCAPED) for text in (source, one.text)]
            numbers = [str(number), str(rank), f"{one.score:.4f}", str(int(one.truncated))]
            yield "\t".join([*numbers, *texts, *links])

    def _object(
        self, number: int, source: str, found: Sequence[Hypothesis], every: Sequence[Aligned]
    ) -> str:
        written: dict[str, Any] = {"line": number, "source": source}
        if every and every[0].weights is not None:
            written["source_tokens"] = every[0].source
        written["translations"] = [
            self._translation(one, aligned) for one, aligned in zip(found, every, strict=True)
        ]
        # Of letters alone, where nothing else is text: half a surrogate is none.
        text = json.dumps(written, ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8", "replace").decode()

    def _translation(self, one: Hypothesis, aligned: Aligned) -> dict[str, Any]:
        written: dict[str, Any] = {
            "text": one.text,
            "score": round(one.score, _DIGITS),
            "truncated": one.truncated,
        }
        if self._tokenizer is not None:
            written["tokens"] = pieces_of(self._tokenizer, one)
        if aligned.links is not None:
            written["alignment"] = [list(link) for link in aligned.links]
        if aligned.weights is not None:
            written["attention"] = [
                [round(float(weight), _DIGITS) for weight in row] for row in aligned.weights
            ]
        return written


def pieces_of(tokenizer: Tokenizer, found: Hypothesis) -> list[str]:
    """The pieces of a translation, the end last unless a limit came before it."""
    pieces = tokenizer.pieces
    return [*(pieces[token].text for token in found.tokens), *([END] if found.ended else [])]


def _pharaoh(links: Sequence[tuple[int, int]]) -> str:
    return " ".join(f"{source}-{target}" for source, target in links)
