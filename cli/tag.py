"""`keras-seq tag`: predicts a tag for each word of each line."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.shared_options import BatchSize, TextsArgument, Which, check_label_options

# Lines per call of the model, to limit the memory for a large file.
_LINES = 4096


def tag(
    run: Annotated[str, typer.Argument(help="Run directory of a tagger.")],
    texts: TextsArgument = None,
    labeled: Annotated[
        str | None, typer.Option(help="text<TAB>tags lines: print scores of the tagger on them.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Columns of --labeled, as in text=1,tags=3; by default as in training."),
    ] = None,
    output_format: Annotated[
        Literal["text", "tsv", "jsonl"],
        typer.Option(
            "--format",
            help="text: tags; tsv: line<TAB>tags, the format of train --labeled; jsonl: words and "
            "tags.",
        ),
    ] = "text",
    which: Which = "best",
    batch_size: BatchSize = None,
) -> None:
    """Predict a tag for each word of each line; with --labeled, print accuracy and F1.

    Words are separated by ASCII white space, and tags by spaces.
    """
    from keras_seq.run import Run
    from keras_seq.text import check_readable, read_lines

    check_label_options(texts, labeled, columns)
    path = labeled or texts or "-"
    check_readable(path)
    opened = Run.open(run, notice=notice)
    opened.require_task("tag")
    opened.require_weights(which)
    tagger = import_quietly("keras_seq.inference.tagger").Tagger.load(
        run, which=which, batch_size=batch_size, notice=notice
    )
    if labeled is not None:
        emit([_scores(tagger, labeled, columns or opened.settings.data.columns)])
    else:
        emit(_predictions(tagger, read_lines(path, notice=notice), output_format))


def _scores(tagger: Any, path: str, columns: str | None) -> str:
    from keras_seq.scoring import tag_scores
    from keras_seq.text import InputError, read_labeled, words_of

    references: list[list[str]] = []
    predictions: list[list[str]] = []
    pairs = read_labeled(path, tagged=True, columns=columns, notice=notice)
    while chunk := list(itertools.islice(pairs, _LINES)):
        references.extend(words_of(tags) for _, tags in chunk)
        tagged = tagger.tag([text for text, _ in chunk])
        predictions.extend(list(line.tags) for line in tagged)
    if not any(references):
        raise InputError(f"{path}: no word has a tag, expected at least one tagged line")
    return tag_scores(references, predictions).table()


def _predictions(tagger: Any, lines: Iterator[str], output_format: str) -> Iterator[str]:
    while chunk := list(itertools.islice(lines, _LINES)):
        yield from (_format(line, output_format) for line in tagger.tag(chunk))


def _format(line: Any, output_format: str) -> str:
    tags = " ".join(line.tags)
    if output_format == "text":
        return tags
    if output_format == "tsv":
        # Join the words with spaces, because a tab would start a new column.
        return f"{' '.join(line.words)}\t{tags}"
    return json.dumps({"words": line.words, "tags": line.tags}, ensure_ascii=False)
