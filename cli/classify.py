"""`keras-seq classify`: predicts the label of each line."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.shared_options import BatchSize, TextsArgument, Which, check_label_options

# Lines per call of the model, to limit the memory for a large file.
_LINES = 4096


def classify(
    run: Annotated[str, typer.Argument(help="Run directory of a classifier.")],
    texts: TextsArgument = None,
    labeled: Annotated[
        str | None,
        typer.Option(help="text<TAB>label lines: print scores of the classifier on them."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Columns of --labeled, as in text=1,label=3; by default as in training."),
    ] = None,
    output_format: Annotated[
        Literal["text", "tsv", "jsonl"],
        typer.Option(
            "--format",
            help="text: label; tsv: label and probability; jsonl: all labels, most probable first.",
        ),
    ] = "text",
    top_k: Annotated[
        int | None,
        typer.Option(min=1, help="Number of labels of each line, most probable first."),
    ] = None,
    min_probability: Annotated[
        float,
        typer.Option(min=0, max=1, help="Leave out labels that are less probable than this."),
    ] = 0.0,
    which: Which = "best",
    batch_size: BatchSize = None,
) -> None:
    """Predict a label for each line; with --labeled, print accuracy, F1 and a confusion matrix.

    Probabilities are calibrated on the validation text: of the labels with a probability of 0.8,
    about 80 % are right.
    """
    from keras_seq.run import Run
    from keras_seq.text import check_readable, read_lines

    check_label_options(texts, labeled, columns)
    if labeled is not None and (top_k is not None or min_probability):
        option = "--top-k" if top_k is not None else "--min-probability"
        raise typer.BadParameter("not with --labeled", param_hint=option)
    path = labeled or texts or "-"
    check_readable(path)
    opened = Run.open(run, notice=notice)
    opened.require_task("classify")
    opened.require_weights(which)
    classifier = import_quietly("keras_seq.inference.classifier").Classifier.load(
        run, which=which, batch_size=batch_size, notice=notice
    )
    if labeled is not None:
        emit([_scores(classifier, labeled, columns or opened.settings.data.columns)])
    else:
        # JSON has all labels by default.
        count = top_k or (None if output_format == "jsonl" else 1)
        select = functools.partial(_select, count=count, min_probability=min_probability)
        emit(_predictions(classifier, read_lines(path, notice=notice), output_format, select))


def _scores(classifier: Any, path: str, columns: str | None) -> str:
    from keras_seq.scoring import label_scores
    from keras_seq.text import InputError, read_labeled

    references: list[str] = []
    predictions: list[str] = []
    rows = read_labeled(path, columns=columns, notice=notice)
    pairs = ((text, label) for text, label in rows if label)
    while chunk := list(itertools.islice(pairs, _LINES)):
        references.extend(label for _, label in chunk)
        predictions.extend(classifier([text for text, _ in chunk]))
    if not references:
        raise InputError(f"{path}: no text has a label, expected at least one labeled line")
    return label_scores(references, predictions).table()


Ranked = Sequence[tuple[str, float]]


def _select(ranked: Ranked, count: int | None, min_probability: float) -> Ranked:
    return [pair for pair in ranked[:count] if pair[1] >= min_probability]


def _predictions(
    classifier: Any,
    lines: Iterator[str],
    output_format: str,
    select: Callable[[Ranked], Ranked],
) -> Iterator[str]:
    from keras_seq.inference.output_formats import line_range

    first = 1
    while chunk := list(itertools.islice(lines, _LINES)):
        predictions = classifier.classify(chunk)
        if truncated := sum(prediction.truncated for prediction in predictions):
            where = line_range(first, len(chunk))
            notice(f"{where}: {truncated} truncated to data.max_source_length tokens")
        first += len(chunk)
        for prediction in predictions:
            yield _format(prediction, output_format, select(prediction.ranked))


def _format(prediction: Any, output_format: str, selected: Ranked) -> str:
    if output_format == "text":
        return "\t".join(label for label, _ in selected)
    if output_format == "tsv":
        return "\t".join(f"{label}\t{share:.6f}" for label, share in selected)
    ranked = [{"label": label, "probability": share} for label, share in selected]
    line = {
        "label": prediction.label,
        "probability": prediction.probability,
        "ranked": ranked,
        "truncated": prediction.truncated,
    }
    return json.dumps(line, ensure_ascii=False)
