"""`keras-seq classify`: the label of each line."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.checkpoint_option import Which
from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly

# Lines that are classified together, so that a large file takes little memory.
_LINES = 4096


def classify(
    run: Annotated[str, typer.Argument(help="Directory that train made, of a classifier.")],
    texts: Annotated[
        str | None, typer.Argument(help="File of texts, one a line; stdin if absent.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="text<TAB>label lines: print how well the classifier does on them."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Columns of --data, as text=1,label=3; those of the training if absent."),
    ] = None,
    output_format: Annotated[
        Literal["text", "tsv", "jsonl"],
        typer.Option(
            "--format",
            help="text: labels; tsv: label and probability; jsonl: all labels, ranked.",
        ),
    ] = "text",
    which: Which = "best",
    batch_size: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Texts at a time.")
    ] = None,
) -> None:
    """Give each line its label; or, with --data, accuracy, F1 and the table of confusion."""
    from keras_seq.inference.output_formats import line_range
    from keras_seq.run import Run
    from keras_seq.text import InputError, check_readable, read_labelled, read_lines

    if data is not None and texts is not None:
        raise typer.BadParameter("both a file of texts and --data given: choose one")
    if columns is not None and data is None:
        raise typer.BadParameter("--columns without --data: it names columns of that file")
    name = data or texts or "-"
    check_readable(name)
    opened = Run.open(run, notice=notice)
    opened.require_task("classify")
    columns = columns or opened.settings.data.columns
    opened.require_weights(which)
    classifier = import_quietly("keras_seq.inference.classifier").Classifier.load(
        run, which=which, batch_size=batch_size, notice=notice
    )
    if data is not None:
        from keras_seq.scoring import label_scores

        found: tuple[list[str], list[str]] = ([], [])
        rows = read_labelled(data, columns=columns, notice=notice)
        pairs = ((text, label) for text, label in rows if label)
        while chunk := list(itertools.islice(pairs, _LINES)):
            found[0].extend(label for _, label in chunk)
            found[1].extend(classifier([text for text, _ in chunk]))
        if not found[0]:
            raise InputError(f"{data}: no text with a label, there is nothing to score")
        emit([label_scores(*found).table()])
        return
    lines = read_lines(name, notice=notice)

    def written() -> Iterator[str]:
        first = 1
        while chunk := list(itertools.islice(lines, _LINES)):
            found = classifier.classify(chunk)
            if cut := sum(one.truncated for one in found):
                where = line_range(first, len(chunk))
                notice(f"{where}: {cut} cut short at the longest input (data.max_source_length)")
            first += len(chunk)
            yield from (_line(one, output_format) for one in found)

    emit(written())


def _line(found: Any, output_format: str) -> str:
    if output_format == "text":
        return str(found.label)
    if output_format == "tsv":
        return f"{found.label}\t{found.probability:.6f}"
    said = {
        "label": found.label,
        "probability": found.probability,
        "ranked": [{"label": label, "probability": share} for label, share in found.ranked],
        "truncated": found.truncated,
    }
    return json.dumps(said, ensure_ascii=False)
