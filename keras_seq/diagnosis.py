"""Whether a bad translation is the model's fault or the search's."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from keras import ops

from keras_seq.likelihood import LikelihoodScorer
from keras_seq.lines import Hypothesis
from keras_seq.scoring import Score, bleu
from keras_seq.search import length_penalty
from keras_seq.settings import SearchSettings, SettingsError

# Two objectives nearer than this are taken for one: a translation's score comes out otherwise in
# the last digits when it is decoded step by step.
TOLERANCE = 1e-4
_LONGEST_REPETITION = 8
# Settings under which a search looks for something else than the highest objective of all targets.
_WITH_RULES = (
    "method",
    "coverage_penalty",
    "min_length",
    "min_length_ratio",
    "no_repeat_ngram_size",
    "repetition_penalty",
    "forbidden",
    "prefix",
)

Verdict = Literal["search error", "model error", "tie"]


@dataclass(frozen=True)
class Output:
    """What one beam found for a line.

    Attributes:
        text: The translation.
        objective: log P(y | x), normalised by length as the search was told.
        length_ratio: Tokens over those of the reference, end tokens counted.
        truncated: Whether the length limit cut it.
        copies: Whether it is the source, or nearly: the share of the words of the
            source that are in it, each as often, is at least 0.8.
        repeats: Whether up to 8 tokens come three times in a row, or more often.
        empty: Whether nothing is in it.
    """

    text: str
    objective: float
    length_ratio: float
    truncated: bool
    copies: bool
    repeats: bool
    empty: bool


@dataclass(frozen=True)
class Line:
    """One line: its reference, what each beam found, and whose fault it is.

    Attributes:
        number: From 1.
        source, reference: The texts.
        objective: Of the reference.
        outputs: By beam size, in the order asked for.
        verdict: Of the first beam: `"search error"` where the model prefers the
            reference, so that a better search would not have given this output;
            `"model error"` where it prefers the output; `"tie"` where neither.
        same: Whether output and reference are the same tokens, which is a tie.
        wider_is_better: Whether a wider beam found a higher objective.
    """

    number: int
    source: str
    reference: str
    objective: float
    outputs: dict[int, Output]
    verdict: Verdict
    same: bool
    wider_is_better: bool


@dataclass(frozen=True)
class Diagnosis:
    """Lines and what they come to.

    Attributes:
        lines: Each `Line`.
        totals: Counts of the verdicts, of `same` and of `wider is better`.
        beams: For each beam size its BLEU, mean objective, length ratio, and counts of
            copies, repetitions, empty and truncated outputs.
        mended: BLEU of the first beam with the reference in place of each output that
            is a search error: more than any search over this model could reach by
            mending them.
    """

    lines: list[Line]
    totals: dict[str, int]
    beams: dict[int, dict[str, Any]]
    mended: Score


def check_search(search: SearchSettings) -> None:
    """Refuses settings under which objectives do not tell what a search missed.

    Raises:
        SettingsError: With the first such setting.
    """
    for name in _WITH_RULES:
        default = type(search).model_fields[name].default
        if (value := getattr(search, name)) != default:
            raise SettingsError(
                f"search.{name}: received {value}, expected {default}: a diagnosis compares "
                "objectives over all translations, among which this rule chooses"
            )


def diagnose(
    sources: Sequence[str],
    references: Sequence[str],
    found: dict[int, list[list[Hypothesis]]],
    scorer: LikelihoodScorer,
    search: SearchSettings,
) -> Diagnosis:
    """Compares what searches found with references, line by line.

        verdict = search error  if  objective(reference) > objective(output)
                  model error   if  objective(reference) < objective(output)
        objective(y) = log P(y | x) / T^alpha, or as `search` normalises

    The reference is encoded as in training and scored by forced decoding; an
    output has the tokens and the score that the search gave it.

    Args:
        sources: Lines of text.
        references: As many lines.
        found: For each beam size, what it found for each line; the first is judged.
        scorer: Of the same model.
        search: How it searched; see `check_search`.

    Returns:
        A `Diagnosis`.

    Raises:
        SettingsError: See `check_search`.
        ValueError: No lines, or not as many of each.
    """
    check_search(search)
    if not sources or any(len(lines) != len(sources) for lines in (references, *found.values())):
        raise ValueError("expected as many references and outputs as sources, and at least one.")
    texts = {
        beam: [hypotheses[0].text if hypotheses else "" for hypotheses in lines]
        for beam, lines in found.items()
    }
    reference_ids = scorer.target_tokenizer.encode(references)
    ids = {
        beam: [list(hypotheses[0].tokens) if hypotheses else [] for hypotheses in lines]
        for beam, lines in found.items()
    }
    objectives = _objectives(scorer, sources, references, search)
    # A blank line has a translation of its own, for which there was no search.
    of_nothing = _objectives(scorer, sources, [""] * len(sources), search)
    of_beams = {
        beam: [
            hypotheses[0].score if hypotheses else nothing
            for hypotheses, nothing in zip(lines, of_nothing, strict=True)
        ]
        for beam, lines in found.items()
    }
    first = next(iter(found))
    lines = []
    for i, source in enumerate(sources):
        outputs = {
            beam: Output(
                text=texts[beam][i],
                objective=of_beams[beam][i],
                length_ratio=(len(ids[beam][i]) + 1) / (len(reference_ids[i]) + 1),
                truncated=any(one.truncated for one in found[beam][i][:1]),
                copies=_copies(source, texts[beam][i]),
                repeats=_repeats(ids[beam][i]),
                empty=not texts[beam][i].strip(),
            )
            for beam in found
        }
        same = ids[first][i] == reference_ids[i]
        ahead = objectives[i] - of_beams[first][i]
        verdict: Verdict = "tie"
        if not same and abs(ahead) > TOLERANCE:
            verdict = "search error" if ahead > 0 else "model error"
        best = max(of_beams[beam][i] for beam in found)
        lines.append(
            Line(
                number=i + 1,
                source=source,
                reference=references[i],
                objective=objectives[i],
                outputs=outputs,
                verdict=verdict,
                same=same,
                wider_is_better=best > of_beams[first][i] + TOLERANCE,
            )
        )
    return Diagnosis(
        lines=lines,
        totals={
            "lines": len(lines),
            **{
                name: sum(line.verdict == name for line in lines)
                for name in ("search error", "model error", "tie")
            },
            "same": sum(line.same for line in lines),
            "wider is better": sum(line.wider_is_better for line in lines),
        },
        beams={beam: _beam(lines, beam, references) for beam in found},
        mended=bleu(
            [
                line.reference if line.verdict == "search error" else line.outputs[first].text
                for line in lines
            ],
            [list(references)],
        ),
    )


def _objectives(
    scorer: LikelihoodScorer, sources: Sequence[str], targets: Sequence[str], search: SearchSettings
) -> list[float]:
    found = scorer(sources, targets)
    lengths = ops.array([len(one.tokens) for one in found], "int32")
    penalty = ops.convert_to_numpy(
        length_penalty(lengths, search.length_normalization, search.alpha)
    )
    return [one.total / float(by) for one, by in zip(found, penalty, strict=True)]


def _beam(lines: list[Line], beam: int, references: Sequence[str]) -> dict[str, Any]:
    outputs = [line.outputs[beam] for line in lines]
    score = bleu([output.text for output in outputs], [list(references)])
    return {
        "bleu": score.value,
        "signature": score.signature,
        "objective": math.fsum(output.objective for output in outputs) / len(outputs),
        "length_ratio": math.fsum(output.length_ratio for output in outputs) / len(outputs),
        "copies": sum(output.copies for output in outputs),
        "repetitions": sum(output.repeats for output in outputs),
        "empty": sum(output.empty for output in outputs),
        "truncated": sum(output.truncated for output in outputs),
    }


def _copies(source: str, text: str) -> bool:
    words, found = Counter(source.split()), Counter(text.split())
    count = words.total()
    return count > 0 and (words & found).total() >= 0.8 * count


def _repeats(tokens: Sequence[int]) -> bool:
    for size in range(1, _LONGEST_REPETITION + 1):
        run = 0
        for i in range(size, len(tokens)):
            run = run + 1 if tokens[i] == tokens[i - size] else 0
            if run >= 2 * size:
                return True
    return False
