"""Translations with the attention weights of the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from keras_seq.analysis.alignment import Aligner
from keras_seq.analysis.attention import Attention, AttentionExtractor
from keras_seq.analysis.attention_layer import alignment_layer
from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.inference.output_formats import END, Alignment
from keras_seq.run import Run
from keras_seq.text import EOS_ID, UNK_ID, Piece


class Explainer:
    """Adds attention to translations of the same model.

    `alignment` is `"hard"` for links between words, `"soft"` for all weights between tokens.
    `layer` is the decoder layer of the attention, by default `alignment_layer`.
    """

    def __init__(
        self,
        run: Run,
        model: Any,
        *,
        alignment: Literal["hard", "soft"] | None = None,
        replace_unknown: bool = False,
        layer: int | None = None,
        head: int | None = None,
    ) -> None:
        longest = run.settings.data.max_source_length
        self.layer = alignment_layer(run.settings) if layer is None else layer
        self.head = head
        self._source_pieces = run.source_tokenizer.pieces
        self._target_pieces = run.target_tokenizer.pieces
        self._extractor = AttentionExtractor(
            model, run.source_tokenizer, longest, layer=self.layer, head=head
        )
        self._aligner = Aligner(run.source_tokenizer, run.target_tokenizer, longest)
        self._alignment = alignment
        self._replace_unknown = replace_unknown

    def __call__(
        self, lines: Sequence[str], translations: Sequence[Sequence[Hypothesis]]
    ) -> tuple[list[list[Hypothesis]], list[list[Alignment]] | None]:
        """Replaces unknown tokens if requested; returns alignments if requested, else None."""
        if self._alignment is None:
            # Only translations with unknown tokens need the forced pass.
            needed = [[row for row in rows if UNK_ID in row.tokens] for rows in translations]
        else:
            needed = [list(rows) for rows in translations]
        results: list[list[Hypothesis]] = []
        alignments: list[list[Alignment]] = []
        for line, hypotheses, attention in zip(
            lines, translations, self._extractor(lines, needed), strict=True
        ):
            remaining = iter(attention)
            results.append([])
            alignments.append([])
            for hypothesis in hypotheses:
                if self._alignment is not None or UNK_ID in hypothesis.tokens:
                    weights = next(remaining)
                    if self._replace_unknown:
                        hypothesis = self._aligner.without_unknown(line, hypothesis, weights)
                    alignments[-1].append(self._align(line, hypothesis, weights))
                results[-1].append(hypothesis)
        return results, alignments if self._alignment else None

    def best_attention(
        self,
        lines: Sequence[str],
        translations: Sequence[Sequence[Hypothesis]],
        *,
        all_layers: bool = False,
    ) -> list[Attention | None]:
        """Returns the attention of the best translation of each line, None for a blank line.

        With `all_layers`, the weights are those of all layers and heads.
        """
        best = [list(hypotheses[:1]) for hypotheses in translations]
        attentions = self._extractor(lines, best, all_layers=all_layers)
        return [attention[0] if attention else None for attention in attentions]

    def pieces(self, attention: Attention) -> tuple[list[str], list[str]]:
        """Returns the tokens of the source and of the translation as text."""

        def texts(pieces: Sequence[Piece], tokens: Sequence[int]) -> list[str]:
            return [END if token == EOS_ID else pieces[token].text for token in tokens]

        return (
            texts(self._source_pieces, attention.source),
            texts(self._target_pieces, attention.target),
        )

    def _align(self, line: str, hypothesis: Hypothesis, attention: Attention) -> Alignment:
        if self._alignment == "soft":
            return Alignment(weights=attention.weights, source=tuple(self.pieces(attention)[0]))
        if self._alignment == "hard":
            return Alignment(links=self._aligner.links(line, hypothesis, attention))
        return Alignment()
