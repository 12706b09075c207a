"""The lines of a report: what the run answered and what was expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from keras_seq.evaluation.resampling import spread
from keras_seq.run import Run
from keras_seq.scoring.error_rate import line_errors
from keras_seq.settings import TASKS
from keras_seq.text import LABELED, TAGGED

# Worst lines, and lines of the whole text, on a page.
WORST, TYPICAL = 50, 20
_CONFUSIONS = 20


class Answers(NamedTuple):
    """Examples and the answers of a run.

    `numbers` are the numbers of the lines in the file, from 1. `outputs` is None if the task has no
    answers.
    """

    numbers: Sequence[int]
    sources: Sequence[str]
    references: Sequence[str]
    outputs: Sequence[str] | None


def report_lines(run: Run, answers: Answers) -> dict[str, Any]:
    """Returns the lines of a page, and which of them are shown first.

    `lines` has `number`, `source`, `reference`, `output` and `error` of each line; `worst` and
    `typical` have places in this list. The error is that of `_errors`.
    """
    if answers.outputs is None:
        return {"lines": [], "worst": [], "typical": [], "wrong": 0}
    errors = _errors(run, answers.outputs, answers.references)
    wrong = [index for index, error in enumerate(errors) if error > 0]
    worst = sorted(wrong, key=lambda index: -errors[index])[:WORST]
    typical = spread(TYPICAL, len(errors))
    shown = sorted({*worst, *typical})
    places = {index: place for place, index in enumerate(shown)}
    return {
        "lines": [
            {
                "number": answers.numbers[index],
                "source": answers.sources[index],
                "reference": answers.references[index],
                "output": answers.outputs[index],
                "error": round(errors[index], 4),
            }
            for index in shown
        ],
        "worst": [places[index] for index in worst],
        "typical": [places[index] for index in typical],
        "wrong": len(wrong),
    }


def confusions(run: Run, answers: Answers) -> list[list[Any]]:
    """Returns the most frequent wrong labels or tags: what was expected, the answer, the count."""
    roles = TASKS[run.settings.task].roles
    if answers.outputs is None or roles not in (LABELED, TAGGED):
        return []
    counts: Counter[tuple[str, str]] = Counter()
    for reference, output in zip(answers.references, answers.outputs, strict=True):
        if roles == TAGGED:
            pairs = zip(reference.split(), output.split(), strict=False)
        else:
            pairs = zip([reference], [output], strict=True)
        counts.update(pair for pair in pairs if pair[0] != pair[1])
    return [[*pair, count] for pair, count in counts.most_common(_CONFUSIONS)]


def _errors(run: Run, outputs: Sequence[str], references: Sequence[str]) -> list[float]:
    """Returns the error of each line: edits divided by the length of the reference.

    The units are the words of tags, spans and sentences, and the characters of other texts. A label
    is right or wrong.
    """
    task = TASKS[run.settings.task]
    if task.roles == LABELED:
        return [float(a != b) for a, b in zip(outputs, references, strict=True)]
    words = sum(len(line.split()) for line in references)
    is_words = task.roles == TAGGED or words >= 3 * len(references)
    counted = line_errors(outputs, references, "word" if is_words else "character")
    rates = counted[:3].sum(axis=0) / counted[3].clip(min=1)
    # Texts that differ only in spaces have no edit.
    return [
        float(rate) or float(a != b) * 1e-6
        for rate, a, b in zip(rates, outputs, references, strict=True)
    ]
