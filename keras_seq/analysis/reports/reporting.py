"""Makes the report of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from keras_seq.analysis.history import History
from keras_seq.analysis.pages import Page, make_page
from keras_seq.analysis.reports.course import curves, facts
from keras_seq.analysis.reports.generated import attention_rows, generated_texts, reconstructed
from keras_seq.analysis.reports.lines import Answers, confusions, report_lines
from keras_seq.data import find_sound
from keras_seq.evaluation.evaluating import evaluate_model
from keras_seq.evaluation.resampling import spread
from keras_seq.evaluation.values import Evaluation
from keras_seq.preparation.sound_encoding import recording_folders
from keras_seq.run import Run
from keras_seq.run.models import load_model
from keras_seq.settings import TASKS

# Lines that are evaluated, which takes seconds and gives intervals of a few percent.
LINES = 500


def report(
    path: str | os.PathLike[str],
    sources: Sequence[str] | None = None,
    references: Sequence[str] | None = None,
    *,
    name: str | None = None,
    which: str | int = "best",
    lines: int = LINES,
    notice: Callable[[str], None] | None = None,
) -> Page:
    """Reports on a trained run: its curves, scores, worst lines, attention and samples.

    Args:
        path: The run directory.
        sources: Inputs of a test set; by default the validation text of the run.
        references: The expected output of each source; see `keras_seq.evaluate`.
        name: The name of the test set on the page.
        which: Checkpoint: `"best"`, `"latest"`, or the step of a stored checkpoint.
        lines: Number of lines to evaluate; of more, lines at equal distances are chosen.
        notice: Receives a line for each damaged checkpoint that is skipped; by default each is a
            warning.

    Returns:
        An HTML page without links to other files. `save(path)` writes it, and notebooks show it.

    Raises:
        InputError: If `path` is not a run with a trained model.
        ValueError: If the numbers of sources and references differ, or are 0.

    Example:

    >>> keras_seq.report("runs/dates").save("report.html")  # doctest: +SKIP
    """
    run = Run.open(path, notice=notice)
    run.require_weights(which)
    if sources is None or references is None:
        sources, references = _validation_text(run)
        name = name or "validation text"
    return report_model(run, load_model(run, which), sources, references, name=name, lines=lines)


def report_model(
    run: Run,
    model: Any,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    name: str | None = None,
    evaluation: Evaluation | None = None,
    lines: int = LINES,
) -> Page:
    """Reports on a model that is loaded from a run; see `report`.

    `evaluation` is that of all lines, if it exists.
    """
    chosen = spread(lines, len(sources)) if evaluation is None else range(len(sources))
    sources = [sources[index] for index in chosen]
    references = [references[index] for index in chosen]
    task = TASKS[run.settings.task]
    outputs: Sequence[str] | None
    if task.metrics:
        evaluation = evaluation or evaluate_model(run, model, sources, references)
        outputs = evaluation.outputs
    else:
        outputs, references = reconstructed(run, model, sources), sources
    shown = ["" if task.autoencoding else source for source in sources]
    answers = Answers([index + 1 for index in chosen], shown, references, outputs)
    history = History.of_run(run)
    data = {
        "run": run.path.resolve().name,
        "facts": facts(run, model.count_params(), history),
        "curves": curves(history),
        "test": {"name": name or "test set", "lines": len(sources), "scores": _scores(evaluation)},
        "confusions": confusions(run, answers),
        **report_lines(run, answers),
        "attention": attention_rows(run, model, answers),
        "samples": generated_texts(run, model),
    }
    return make_page("report", data)


def _validation_text(run: Run) -> tuple[list[str], list[str]]:
    sources, references = run.valid_lines()
    if TASKS[run.settings.task].reads_sounds:
        folders = recording_folders(run.settings)
        sources = [str(find_sound(name, folders)) for name in sources]
    return sources, references


def _scores(evaluation: Evaluation | None) -> list[list[str]]:
    """Returns the rows of the table of scores: metric, value, interval, baseline, signature."""
    if evaluation is None:
        return []
    baseline = evaluation.baseline
    rows = []
    for key, metric in evaluation.metrics.items():
        interval, other = "", ""
        if metric.mean is not None and metric.interval is not None:
            interval = f"{metric.mean:.{metric.digits}f} ± {metric.interval:.{metric.digits}f}"
        if baseline is not None and key in baseline.metrics:
            other = f"{baseline.metrics[key].value:.{metric.digits}f} ({baseline.name})"
        value = f"{metric.value:.{metric.digits}f}"
        rows.append([metric.name, value, interval, other, metric.signature])
    return rows
