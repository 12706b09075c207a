"""`keras-seq evaluate`: scores a run on a test set."""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_seq_cli.output import check_writable, emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.search_options import with_search_options
from keras_seq_cli.shared_options import Ensemble, Json, Metrics, Tokenize, Which, split_metrics
from keras_seq_cli.test_set_options import with_test_set_options


# Omit --n-best, because only the best output of each example is scored.
@functools.partial(with_search_options, without=("n_best",))
@with_test_set_options
def evaluate(
    run: Annotated[str, typer.Argument(help="Run directory.")],
    metric: Metrics = None,
    tokenize: Tokenize = None,
    confidence: Annotated[
        bool,
        typer.Option(
            "--confidence/--no-confidence",
            help="Compute 95 % confidence intervals by bootstrap resampling.",
        ),
    ] = True,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Bootstrap samples; 1,000 by default.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="File for the output of each line.")
    ] = None,
    as_json: Json = False,
    which: Which = "best",
    ensemble: Ensemble = None,
    *,
    files: Any,
    search: dict[str, Any],
) -> None:
    """Decode a test set and print the metrics of the task.

    Metrics: exact, cer, wer, chrf, bleu and ter of translations; perplexity and bits_per_character
    of a language model; accuracy, macro_f1 and calibration_error of a classifier; accuracy,
    macro_f1 and entity_f1 of a tagger; wer, cer and exact of a speech recognizer; f1 and
    false_alarms of a wake word detector. The metric that selects the best checkpoint is printed
    first. The scores of the best checkpoint and of a
    baseline that needs no model are added to the model card, README.md in the run directory.
    """
    from keras_seq.evaluation import check_options, evaluation_metrics
    from keras_seq.run import Run

    if samples and not confidence:
        raise typer.BadParameter("needs --confidence", param_hint="--samples")
    metrics = split_metrics(metric)
    opened = Run.open(run, notice=notice)
    check_options(opened, tokenize=tokenize, ensemble=ensemble or (), search=search)
    opened.require_weights(which)
    if output is not None:
        if opened.settings.task == "language-model":
            raise typer.BadParameter("not for a language model", param_hint="--output")
        check_writable(output)
    examples = files.read(opened, notice)
    evaluation_metrics(opened, metrics, examples)
    sources, references = zip(*examples, strict=True)
    result = import_quietly("keras_seq.evaluation.evaluating").evaluate(
        run,
        sources,
        references,
        which=which,
        ensemble=ensemble or (),
        metrics=metrics,
        tokenize=tokenize,
        confidence=confidence,
        samples=samples,
        notice=notice,
        **search,
    )
    if output is not None:
        _write(output, result.outputs)
    if result.truncated:
        notice(
            f"{result.truncated:,} of {result.lines:,} lines truncated to the limits "
            "data.max_source_length or search.max_length"
        )
    notice(f"{run}: step {result.step:,}, {result.lines:,} lines")
    _report_baseline(result)
    if which == "best" and not ensemble:
        options = "".join(f", {key}={value}" for key, value in search.items())
        _write_card(opened, files.name + options, result)
    if as_json:
        data = {"run": Path(run).resolve().name, "checkpoint": which} | result.to_dict()
        emit([json.dumps(data, ensure_ascii=False, indent=1)])
    else:
        emit(score.text for score in result.metrics.values())
        for name, metrics in result.languages.items():
            emit(f"{name}: {score.text}" for score in metrics.values())


def _report_baseline(result: Any) -> None:
    if result.baseline is None:
        notice(f"no baseline: {result.no_baseline}")
        return
    values = ", ".join(
        f"{metric.name} = {metric.value:.{metric.digits}f}"
        for metric in result.baseline.metrics.values()
    )
    notice(f"baseline ({result.baseline.name}): {values}")
    if result.beats_baseline is False:
        notice("the run is not better than this baseline, which needs no model")


def _write_card(run: Any, name: str, result: Any) -> None:
    from keras_seq.evaluation.card import add_to_card

    try:
        add_to_card(run, name, result)
    except OSError as error:
        notice(str(error))


def _write(path: str, lines: Sequence[str]) -> None:
    from keras_seq.storage import write_file

    content = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    write_file(Path(path), gzip.compress(content) if path.endswith(".gz") else content)
    notice(f"{path} written")
