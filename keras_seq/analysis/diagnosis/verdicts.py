"""Verdicts on translations: search error or model error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from keras import ops

from keras_seq.analysis.diagnosis.result import Diagnosis, Line, Summary, Target, Verdict
from keras_seq.analysis.diagnosis.search_space import SearchSpace
from keras_seq.analysis.diagnosis.symptoms import is_copy, repeats
from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.inference.likelihood import Likelihood, LikelihoodScorer
from keras_seq.scoring import bleu, sentence_chrf
from keras_seq.search import length_penalty
from keras_seq.settings import SearchSettings
from keras_seq.text import plain_sources

# Objectives with a smaller difference count as equal, because float32 is not more precise.
TOLERANCE = 1e-4


def judge(
    sources: Sequence[str],
    references: Sequence[str],
    translations: Mapping[int, Sequence[Sequence[Hypothesis]]],
    scorer: LikelihoodScorer,
    search: SearchSettings,
) -> Diagnosis:
    """Compares the translations of searches with references, line by line.

        verdict = search error  if  objective(reference) > objective(output)
                  model error   if  objective(reference) < objective(output)
        objective(y) = log P(y | x) / T^alpha, or another normalization of `search`

    The reference is encoded as in training; an output has the tokens of the search. Forced
    decoding scores both. An output that reached the maximum length is scored with an end token
    after it.
    """
    lines = len(sources)
    if not lines or any(len(rows) != lines for rows in (references, *translations.values())):
        raise ValueError("expected as many references and outputs as sources, and at least one.")
    if not translations:
        raise ValueError("expected the outputs of at least one beam.")
    return _Judge(sources, references, scorer, search).judge(translations)


class _Judge:
    """Scores the references once, and then the outputs of each beam."""

    def __init__(
        self,
        sources: Sequence[str],
        references: Sequence[str],
        scorer: LikelihoodScorer,
        search: SearchSettings,
    ) -> None:
        tokenizer = scorer.target_tokenizer
        self._sources, self._references = sources, references
        self._sources_alone = plain_sources(sources, scorer.source_tokenizer)
        self._scorer, self._search = scorer, search
        self._pieces = [piece.text for piece in tokenizer.pieces]
        self._reference_ids = tokenizer.encode(references)
        self._normalized = tokenizer.decode(self._reference_ids)
        self._likelihoods = scorer.of_tokens(sources, self._reference_ids)
        self._space = SearchSpace(search, tokenizer)
        lengths = [likelihood.source_length for likelihood in self._likelihoods]
        self._limits = self._space.limits(lengths)
        # A blank source has a blank translation, without a search.
        self._searched = [length > 0 for length in lengths]
        self._expected = self._targets(references, self._reference_ids, self._likelihoods)

    def judge(self, translations: Mapping[int, Sequence[Sequence[Hypothesis]]]) -> Diagnosis:
        beams = {beam: self._outputs(results) for beam, results in translations.items()}
        lines = [
            self._line(i, {beam: outputs[i] for beam, outputs in beams.items()})
            for i in range(len(self._sources))
        ]
        oracle = [
            (line.reference if line.verdict == "search error" else line.first).text
            for line in lines
        ]
        return Diagnosis(
            lines=lines,
            beams={beam: _summary(outputs, self._expected) for beam, outputs in beams.items()},
            references=_summary(self._expected, self._expected, is_reference=True),
            oracle_bleu=bleu(oracle, [list(self._references)]),
            search=self._search,
        )

    def _targets(
        self, texts: Sequence[str], ids: Sequence[Sequence[int]], likelihoods: Sequence[Likelihood]
    ) -> list[Target]:
        objectives = _objectives(likelihoods, self._search)
        return [
            Target(
                text=text,
                objective=objective,
                tokens=len(tokens) + 1,
                copies=is_copy(source, text),
                repeats=repeats([self._pieces[token] for token in tokens]),
                empty=not text.strip(),
            )
            for source, text, tokens, objective in zip(
                self._sources_alone, texts, ids, objectives, strict=True
            )
        ]

    def _outputs(self, results: Sequence[Sequence[Hypothesis]]) -> list[Target]:
        """Returns the best hypothesis of each line as a `Target` with its verdict."""
        texts = [hypotheses[0].text if hypotheses else "" for hypotheses in results]
        ids = [hypotheses[0].tokens if hypotheses else () for hypotheses in results]
        outputs = self._targets(texts, ids, self._scorer.of_tokens(self._sources, ids))
        scores = sentence_chrf(texts, self._references)
        return [
            replace(
                output,
                chrf=scores[i],
                # `tokens` and the limit include the end token, so only truncated outputs exceed it.
                truncated=self._searched[i] and output.tokens > self._limits[i][1],
                verdict=self._verdict(i, output) if self._searched[i] else None,
            )
            for i, output in enumerate(outputs)
        ]

    def _verdict(self, i: int, output: Target) -> Verdict:
        margin = self._expected[i].objective - output.objective
        if output.text == self._normalized[i] or abs(margin) <= TOLERANCE:
            return "tie"
        return "search error" if margin > 0 else "model error"

    def _line(self, i: int, outputs: dict[int, Target]) -> Line:
        beam, output = next(iter(outputs.items()))
        out_of_reach = None
        if output.verdict:
            out_of_reach = self._space.out_of_reach(self._reference_ids[i], self._limits[i])
        return Line(
            number=i + 1,
            source=self._sources[i],
            reference=self._expected[i],
            outputs=outputs,
            same=self._searched[i] and output.text == self._normalized[i],
            wider_is_better=any(
                other_beam > beam and other.objective > output.objective + TOLERANCE
                for other_beam, other in outputs.items()
            ),
            source_truncated=self._likelihoods[i].source_truncated,
            out_of_reach=out_of_reach,
        )


def _objectives(likelihoods: Sequence[Likelihood], search: SearchSettings) -> list[float]:
    # Two blank lines have no tokens, and the length penalty must not be 0.
    lengths = ops.array([max(len(row.tokens), 1) for row in likelihoods], "int32")
    penalties = ops.convert_to_numpy(
        length_penalty(lengths, search.length_normalization, search.alpha)
    )
    return [row.total / float(by) for row, by in zip(likelihoods, penalties, strict=True)]


def _summary(
    outputs: Sequence[Target], references: Sequence[Target], *, is_reference: bool = False
) -> Summary:
    score = None
    if not is_reference:
        score = bleu([output.text for output in outputs], [[row.text for row in references]])
    tokens = sum(output.tokens for output in outputs)
    return Summary(
        bleu=score,
        objective=math.fsum(output.objective for output in outputs) / len(outputs),
        length_ratio=tokens / sum(reference.tokens for reference in references),
        copies=sum(output.copies for output in outputs),
        repetitions=sum(output.repeats for output in outputs),
        empty=sum(output.empty for output in outputs),
        truncated=sum(output.truncated for output in outputs),
        search_errors=sum(output.verdict == "search error" for output in outputs),
        model_errors=sum(output.verdict == "model error" for output in outputs),
        ties=sum(output.verdict == "tie" for output in outputs),
    )
