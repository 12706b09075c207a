"""Whether a bad translation is the model's fault or the search's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from keras import ops

from keras_seq.analysis.diagnosis.search_space import Reach
from keras_seq.analysis.diagnosis.symptoms import is_copy, repeats
from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.inference.likelihood import Likelihood, LikelihoodScorer
from keras_seq.scoring import Score, bleu, sentence_chrf
from keras_seq.search import length_penalty
from keras_seq.settings import SearchSettings

# Two objectives nearer than this are taken for one, as float32 is no more exact than this.
TOLERANCE = 1e-4

Verdict = Literal["search error", "model error", "tie"]
VERDICTS: tuple[Verdict, ...] = ("search error", "model error", "tie")


@dataclass(frozen=True)
class Target:
    """A reference, or what a beam found, as the model sees it.

    Attributes:
        text: The line.
        objective: log P(y | x), normalised by length as the search was told, by forced
            decoding of the tokens and the end token.
        tokens: Their number, the end token included.
        copies: Whether it is nearly the source, see `is_copy`.
        repeats: Whether it says the same again and again, see `repeats`.
        empty: Whether nothing is in it.
        chrf: Of an output: chrF of the line alone, against the reference.
        cut: Of an output: whether the limit came before the end token.
        verdict: Of an output: `"search error"` where the model prefers the reference, so
            that a better search would not have given this; `"model error"` where it
            prefers this; `"tie"` where neither, or where both are the same text. None
            where the source is blank, for then there is no search.
    """

    text: str
    objective: float
    tokens: int
    copies: bool
    repeats: bool
    empty: bool
    chrf: float | None = None
    cut: bool = False
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Line:
    """One line: its reference, what each beam found, and whose fault the first's is.

    Attributes:
        number: From 1.
        source: The line.
        reference: As a `Target`.
        outputs: By beam size, in the order asked for.
        same: Whether the first output is the reference, which is a tie.
        wider_is_better: Whether a wider beam than the first found a higher objective.
        source_cut: Whether the source is longer than the model is given.
        out_of_reach: Why no search with these settings can find the reference, such as
            `"longer than the limit"`; None if it can, or where there was none.
    """

    number: int
    source: str
    reference: Target
    outputs: dict[int, Target]
    same: bool
    wider_is_better: bool
    source_cut: bool
    out_of_reach: str | None

    @property
    def first(self) -> Target:
        """The output that is judged."""
        return next(iter(self.outputs.values()))

    @property
    def verdict(self) -> Verdict | None:
        """Of the first output."""
        return self.first.verdict

    @property
    def ahead(self) -> float:
        """By how much the reference's objective is above the output's."""
        return self.reference.objective - self.first.objective


@dataclass(frozen=True)
class Summary:
    """All outputs of a beam, or all references.

    Attributes:
        bleu: Its `Score`; None of references.
        objective: The mean over lines.
        length_ratio: All its tokens over those of the references.
        copies, repetitions, empty, cut: Lines.
        search_errors, model_errors, ties: Lines.
    """

    bleu: Score | None
    objective: float
    length_ratio: float
    copies: int
    repetitions: int
    empty: int
    cut: int
    search_errors: int
    model_errors: int
    ties: int


@dataclass(frozen=True)
class Diagnosis:
    """Lines and what they come to.

    Attributes:
        lines: Each `Line`.
        beams: A `Summary` of each beam, in the order asked for; the first is judged.
        references: That of the references.
        mended: BLEU of the first beam with the reference in place of each output that is a
            search error. No search over this model gains more by mending them.
        search: Settings of the search of the first beam.
    """

    lines: list[Line]
    beams: dict[int, Summary]
    references: Summary
    mended: Score
    search: SearchSettings

    @property
    def totals(self) -> dict[str, int]:
        """Numbers of lines; the first four verdicts add up to `lines`."""
        lines = self.lines
        errors = [line for line in lines if line.verdict == "search error"]
        return {
            "lines": len(lines),
            "search_errors": len(errors),
            "model_errors": sum(line.verdict == "model error" for line in lines),
            "ties": sum(line.verdict == "tie" for line in lines),
            "not_judged": sum(line.verdict is None for line in lines),
            "same": sum(line.same for line in lines),
            "out_of_reach": sum(line.out_of_reach is not None for line in errors),
            "wider_is_better": sum(line.wider_is_better for line in lines),
            "cut_sources": sum(line.source_cut for line in lines),
        }

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it; docs/diagnosis.md says what each key means."""
        search = self.search.model_dump()
        return {
            "format": "keras-seq diagnosis 1",
            "search": {name: search[name] for name in _SAID_OF_THE_SEARCH},
            "totals": self.totals,
            "beams": [{"beam": beam, **_summary(one)} for beam, one in self.beams.items()],
            "references": _summary(self.references),
            "mended": _score(self.mended),
            "lines": [
                {
                    "number": line.number,
                    "verdict": line.verdict,
                    "ahead": line.ahead,
                    "same": line.same,
                    "wider_is_better": line.wider_is_better,
                    "source_cut": line.source_cut,
                    "out_of_reach": line.out_of_reach,
                    "source": line.source,
                    "reference": _reference(line.reference),
                    "outputs": [
                        {"beam": beam, **asdict(output)} for beam, output in line.outputs.items()
                    ],
                }
                for line in self.lines
            ],
        }


_SAID_OF_THE_SEARCH = (
    "length_normalization", "alpha", "patience", "min_length", "min_length_ratio", "max_length",
    "max_length_ratio", "max_length_extra", "no_repeat_ngram_size", "forbidden", "prefix",
)  # fmt: skip


def judge(
    sources: Sequence[str],
    references: Sequence[str],
    found: Mapping[int, Sequence[Sequence[Hypothesis]]],
    scorer: LikelihoodScorer,
    search: SearchSettings,
) -> Diagnosis:
    """Compares what searches found with references, line by line.

        verdict = search error  if  objective(reference) > objective(output)
                  model error   if  objective(reference) < objective(output)
        objective(y) = log P(y | x) / T^alpha, or as `search` normalises

    The reference is encoded as in training; an output has the tokens that the search gave
    it. Both are scored alike, by forced decoding. Of an output that the limit cut that is
    what the text is worth that was given, with an end token behind it.

    Args:
        sources: Lines of text.
        references: As many lines.
        found: For each beam size, what it found for each line; the first is judged.
        scorer: Of the same model.
        search: How it searched; see `diagnosis_settings`.

    Returns:
        A `Diagnosis`.

    Raises:
        ValueError: No lines, no beams, or not as many of each.
        InputError: As `LikelihoodScorer`.
    """
    if not sources or any(len(lines) != len(sources) for lines in (references, *found.values())):
        raise ValueError("expected as many references and outputs as sources, and at least one.")
    if not found:
        raise ValueError("expected the outputs of at least one beam.")
    pieces = [piece.text for piece in scorer.target_tokenizer.pieces]
    reference_ids = scorer.target_tokenizer.encode(references)
    normal = scorer.target_tokenizer.decode(reference_ids)
    likelihoods = scorer.of_tokens(sources, reference_ids)
    reach = Reach(search, scorer.target_tokenizer)
    limits = reach.limits([one.source_length for one in likelihoods])
    # A blank source has a blank translation, without a search.
    searched = [one.source_length > 0 for one in likelihoods]

    def targets(
        texts: Sequence[str], ids: Sequence[Sequence[int]], scored: Sequence[Likelihood]
    ) -> list[Target]:
        return [
            Target(
                text=text,
                objective=objective,
                tokens=len(tokens) + 1,
                copies=is_copy(source, text),
                repeats=repeats([pieces[token] for token in tokens]),
                empty=not text.strip(),
            )
            for source, text, tokens, objective in zip(
                sources, texts, ids, _objectives(scored, search), strict=True
            )
        ]

    of_references = targets(references, reference_ids, likelihoods)
    of_beams: dict[int, list[Target]] = {}
    for beam, lines in found.items():
        texts = [hypotheses[0].text if hypotheses else "" for hypotheses in lines]
        ids = [hypotheses[0].tokens if hypotheses else () for hypotheses in lines]
        outputs = targets(texts, ids, scorer.of_tokens(sources, ids))
        scores = sentence_chrf(texts, references)
        of_beams[beam] = [
            replace(
                output,
                chrf=scores[i],
                # What ended has its end token within the limit.
                cut=searched[i] and output.tokens > limits[i][1],
                verdict=_verdict(output, of_references[i], normal[i]) if searched[i] else None,
            )
            for i, output in enumerate(outputs)
        ]
    first = next(iter(found))
    every = []
    for i, source in enumerate(sources):
        by_beam = {beam: outputs[i] for beam, outputs in of_beams.items()}
        output = by_beam[first]
        every.append(
            Line(
                number=i + 1,
                source=source,
                reference=of_references[i],
                outputs=by_beam,
                same=searched[i] and output.text == normal[i],
                wider_is_better=any(
                    beam > first and other.objective > output.objective + TOLERANCE
                    for beam, other in by_beam.items()
                ),
                source_cut=likelihoods[i].source_cut,
                out_of_reach=output.verdict and reach.out_of_reach(reference_ids[i], limits[i]),
            )
        )
    return Diagnosis(
        lines=every,
        beams={beam: _summed(outputs, of_references) for beam, outputs in of_beams.items()},
        references=_summed(of_references, of_references, is_reference=True),
        mended=bleu(
            [
                (line.reference if line.verdict == "search error" else line.first).text
                for line in every
            ],
            [list(references)],
        ),
        search=search,
    )


def _objectives(scored: Sequence[Likelihood], search: SearchSettings) -> list[float]:
    # Of two blank lines there is not even an end token.
    lengths = ops.array([max(len(one.tokens), 1) for one in scored], "int32")
    penalty = ops.convert_to_numpy(
        length_penalty(lengths, search.length_normalization, search.alpha)
    )
    return [one.total / float(by) for one, by in zip(scored, penalty, strict=True)]


def _verdict(output: Target, reference: Target, normal_reference: str) -> Verdict:
    ahead = reference.objective - output.objective
    if output.text == normal_reference or abs(ahead) <= TOLERANCE:
        return "tie"
    return "search error" if ahead > 0 else "model error"


def _summed(
    outputs: Sequence[Target], references: Sequence[Target], *, is_reference: bool = False
) -> Summary:
    score = None
    if not is_reference:
        score = bleu([one.text for one in outputs], [[one.text for one in references]])
    return Summary(
        bleu=score,
        objective=math.fsum(one.objective for one in outputs) / len(outputs),
        length_ratio=sum(one.tokens for one in outputs) / sum(one.tokens for one in references),
        copies=sum(one.copies for one in outputs),
        repetitions=sum(one.repeats for one in outputs),
        empty=sum(one.empty for one in outputs),
        cut=sum(one.cut for one in outputs),
        search_errors=sum(one.verdict == "search error" for one in outputs),
        model_errors=sum(one.verdict == "model error" for one in outputs),
        ties=sum(one.verdict == "tie" for one in outputs),
    )


def _summary(summary: Summary) -> dict[str, Any]:
    found = vars(summary) | {"bleu": None if summary.bleu is None else _score(summary.bleu)}
    if summary.bleu is None:
        # What references are not judged by, nor ever are.
        for name in ("bleu", "cut", "search_errors", "model_errors", "ties"):
            del found[name]
    return found


def _reference(target: Target) -> dict[str, Any]:
    found = asdict(target)
    return {name: value for name, value in found.items() if name not in ("chrf", "cut", "verdict")}


def _score(score: Score) -> dict[str, Any]:
    return {"value": score.value, "signature": score.signature}
