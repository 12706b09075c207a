"""Output formats of `keras-seq translate`: text, a table, JSON objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.text import Tokenizer

Format = Literal["text", "tsv", "jsonl"]
END = "</s>"
_ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_COLUMNS = ("line", "rank", "score", "truncated", "source", "translation")
# Significant digits of float32, nearly.
_DIGITS = 6


def format_lines(
    results: Iterable[Sequence[Hypothesis]], first: int, *, n_best: int, scores: bool
) -> Iterator[str]:
    """Yields translations in the plain text format; `first` is the number of the first line.

    If `n_best` is above 1, each translation has a line `number<TAB>score<TAB>translation`.
    Otherwise a line is the translation, with `scores` `score<TAB>translation`.
    """
    for number, hypotheses in enumerate(results, first):
        rows = [(f"{hypothesis.score:.4f}", hypothesis.text) for hypothesis in hypotheses]
        for score, text in rows or [("0.0000", "")]:
            if n_best > 1:
                yield f"{number}\t{score}\t{text}"
            else:
                yield f"{score}\t{text}" if scores else text


def truncation_notice(results: Iterable[Sequence[Hypothesis]], where: str) -> str | None:
    """Returns a notice of how many lines were truncated, or None if no line was."""
    count = sum(any(hypothesis.truncated for hypothesis in row[:1]) for row in results)
    if not count:
        return None
    return (
        f"{where}: {count} cut short at the longest input or output (data.max_source_length, "
        "search.max_length, search.max_length_ratio, search.max_length_extra)"
    )


def line_range(first: int, count: int) -> str:
    """Names lines of a file: `line 1`, or `lines 1 to 64`."""
    return f"line {first}" if count == 1 else f"lines {first} to {first + count - 1}"


class Alignment(NamedTuple):
    """The alignment of a translation with its source, from the attention of the model.

    `links` are pairs `(source word, target word)`. `weights` are `(T, S)`, and `source` has the
    tokens of the columns, the end last.
    """

    links: Sequence[tuple[int, int]] | None = None
    weights: np.ndarray | None = None
    source: tuple[str, ...] = ()


_Aligned = tuple[Hypothesis, Alignment]


class OutputFormat:
    r"""Writes translations of lines.

    `"text"` has one translation per line, see `format_lines`. `"tsv"` is a table with a header and
    one translation per row; a backslash, tab or line end in a text is written as `\\`, `\t`, `\n`
    or `\r`. `"jsonl"` has one object for each line of the input, which includes the tokens of each
    translation if there is a `target_tokenizer`. `links` adds the links between words.

    Example:

    >>> table = OutputFormat("tsv")
    >>> next(table.header()).split("\t")
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
        self._name, self._tokenizer = name, target_tokenizer
        self._n_best, self._scores, self._links = n_best, scores, links

    def header(self) -> Iterator[str]:
        """Yields the header line if the format has a header."""
        if self._name == "tsv":
            yield "\t".join([*_COLUMNS, *(["alignment"] if self._links else [])])

    def lines(
        self,
        number: int,
        source: str,
        hypotheses: Sequence[Hypothesis],
        alignments: Sequence[Alignment] | None = None,
    ) -> Iterator[str]:
        """Yields the output for line `number` of the input, counted from 1."""
        alignments = alignments or [Alignment()] * len(hypotheses)
        if self._name == "jsonl":
            yield self._object(number, source, list(zip(hypotheses, alignments, strict=True)))
        elif self._name == "tsv":
            yield from self._rows(number, source, list(zip(hypotheses, alignments, strict=True)))
        else:
            texts = format_lines([hypotheses], number, n_best=self._n_best, scores=self._scores)
            for text, alignment in zip(texts, alignments or [Alignment()], strict=True):
                links = alignment.links
                yield text if links is None else f"{text} ||| {_pharaoh(links)}"

    def _rows(self, number: int, source: str, pairs: list[_Aligned]) -> Iterator[str]:
        links = [""] if self._links else []
        if not pairs:
            # Writes a row for every input line, even if it has no translation.
            yield "\t".join([str(number), "1", "", "0", source.translate(_ESCAPED), "", *links])
        for rank, (hypothesis, alignment) in enumerate(pairs, 1):
            if self._links:
                links = [_pharaoh(alignment.links or ())]
            texts = [text.translate(_ESCAPED) for text in (source, hypothesis.text)]
            score, truncated = f"{hypothesis.score:.4f}", str(int(hypothesis.truncated))
            yield "\t".join([str(number), str(rank), score, truncated, *texts, *links])

    def _object(self, number: int, source: str, pairs: list[_Aligned]) -> str:
        content: dict[str, Any] = {"line": number, "source": source}
        if pairs and pairs[0][1].weights is not None:
            content["source_tokens"] = pairs[0][1].source
        content["translations"] = [self._translation(*pair) for pair in pairs]
        text = json.dumps(content, ensure_ascii=False, allow_nan=False)
        # A lone surrogate has no encoding in UTF-8.
        return text.encode("utf-8", "replace").decode()

    def _translation(self, hypothesis: Hypothesis, alignment: Alignment) -> dict[str, Any]:
        content: dict[str, Any] = {
            "text": hypothesis.text,
            "score": round(hypothesis.score, _DIGITS),
            "truncated": hypothesis.truncated,
        }
        if self._tokenizer is not None:
            content["tokens"] = pieces_of(self._tokenizer, hypothesis)
        if alignment.links is not None:
            content["alignment"] = [list(link) for link in alignment.links]
        if alignment.weights is not None:
            content["attention"] = [
                [round(float(weight), _DIGITS) for weight in row] for row in alignment.weights
            ]
        return content


def pieces_of(tokenizer: Tokenizer, hypothesis: Hypothesis) -> list[str]:
    """Returns the tokens of a translation as text, with the end token if it was generated."""
    pieces = [tokenizer.pieces[token].text for token in hypothesis.tokens]
    return [*pieces, END] if hypothesis.ended else pieces


def _pharaoh(links: Sequence[tuple[int, int]]) -> str:
    """Returns links in the Pharaoh format, such as `0-0 1-2`."""
    return " ".join(f"{source}-{target}" for source, target in links)
