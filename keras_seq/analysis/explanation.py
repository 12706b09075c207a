"""Translations with what attention tells about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from keras_seq.analysis.alignment import Aligner
from keras_seq.analysis.attention import Attention, AttentionExtractor
from keras_seq.analysis.attention_layer import aligning_layer
from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.inference.output_formats import END, Aligned
from keras_seq.run import Run
from keras_seq.text import EOS_ID, UNK_ID, Piece

Alignment = Literal["hard", "soft"]


class Explainer:
    """Adds attention to what a search found, over the same model.

    Args:
        run: The run of the model.
        model: The model.
        alignment: `"hard"`, links between words; `"soft"`, all weights between tokens; None.
        replace_unknown: Whether unknown tokens are replaced by words of the source.
        layer: Whose attention; `aligning_layer` if None.
        head: As `AttentionExtractor` takes it.
    """

    def __init__(
        self,
        run: Run,
        model: Any,
        *,
        alignment: Alignment | None = None,
        replace_unknown: bool = False,
        layer: int | None = None,
        head: int | None = None,
    ) -> None:
        longest = run.settings.data.max_source_length
        self.layer = aligning_layer(run.settings) if layer is None else layer
        self.head = head
        self._source_pieces = run.source_tokenizer.pieces
        self._target_pieces = run.target_tokenizer.pieces
        self._attending = AttentionExtractor(
            model, run.source_tokenizer, longest, layer=self.layer, head=head
        )
        self._aligner = Aligner(run.source_tokenizer, run.target_tokenizer, longest)
        self._alignment = alignment
        self._replace = replace_unknown

    def __call__(
        self, lines: Sequence[str], found: Sequence[Sequence[Hypothesis]]
    ) -> tuple[list[list[Hypothesis]], list[list[Aligned]] | None]:
        """The translations with unknown tokens replaced, and what attention to them came to.

        Args:
            lines: Lines of text.
            found: For each its translations.

        Returns:
            As `found`; and, where an alignment was asked for, an `Aligned` of each.
        """
        if self._alignment is None:
            wanted = [[one for one in every if UNK_ID in one.tokens] for every in found]
        else:
            wanted = [list(every) for every in found]
        attention = self._attending(lines, wanted)
        replaced: list[list[Hypothesis]] = []
        aligned: list[list[Aligned]] = []
        for line, every, of_line in zip(lines, found, attention, strict=True):
            of_each = iter(of_line)
            replaced.append([])
            aligned.append([])
            for one in every:
                if self._alignment is None and UNK_ID not in one.tokens:
                    replaced[-1].append(one)
                    continue
                seen = next(of_each)
                if self._replace:
                    one = self._aligner.without_unknown(line, one, seen)
                replaced[-1].append(one)
                aligned[-1].append(self._aligned(line, one, seen))
        return replaced, aligned if self._alignment else None

    def look(
        self, lines: Sequence[str], found: Sequence[Sequence[Hypothesis]], *, every: bool = False
    ) -> list[Attention | None]:
        """The attention to the best translation of each line, None where there is none.

        Args:
            lines: Lines of text.
            found: For each its translations.
            every: Whether of all layers and heads.
        """
        best = [list(of_line[:1]) for of_line in found]
        attend = self._attending.every if every else self._attending
        return [of_line[0] if of_line else None for of_line in attend(lines, best)]

    def pieces(self, attention: Attention) -> tuple[list[str], list[str]]:
        """The pieces of the source and of the translation, to write beside their attention."""
        return (
            [_piece(self._source_pieces, token) for token in attention.source],
            [_piece(self._target_pieces, token) for token in attention.target],
        )

    def _aligned(self, line: str, found: Hypothesis, seen: Attention) -> Aligned:
        if self._alignment == "soft":
            return Aligned(weights=seen.weights, source=tuple(self.pieces(seen)[0]))
        if self._alignment == "hard":
            return Aligned(links=self._aligner.links(line, found, seen))
        return Aligned()


def _piece(pieces: Sequence[Piece], token: int) -> str:
    return END if token == EOS_ID else pieces[token].text
