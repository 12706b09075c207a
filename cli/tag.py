"""`keras-seq tag`: a tag for each word of each line."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.checkpoint_option import Which
from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly

# Lines that are tagged together, so that a large file takes little memory.
_LINES = 4096


def tag(
    run: Annotated[str, typer.Argument(help="Directory that train made, of a tagger.")],
    texts: Annotated[
        str | None, typer.Argument(help="File of texts, one a line; stdin if absent.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="text<TAB>tags lines: print how well the tagger does on them."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Columns of --data, as text=1,tags=3; those of the training if absent."),
    ] = None,
    output_format: Annotated[
        Literal["text", "tsv", "jsonl"],
        typer.Option(
            "--format",
            help="text: the tags of a line; tsv: line<TAB>tags, as train takes it; "
            "jsonl: words and tags.",
        ),
    ] = "text",
    which: Which = "best",
    batch_size: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Texts at a time.")
    ] = None,
) -> None:
    """Give each word of each line its tag; or, with --data, accuracy and F1.

    White space of ASCII parts words, and spaces part their tags.
    """
    from keras_seq.run import Run
    from keras_seq.text import InputError, check_readable, read_labelled, read_lines, words_of

    if data is not None and texts is not None:
        raise typer.BadParameter("both a file of texts and --data given: choose one")
    if columns is not None and data is None:
        raise typer.BadParameter("--columns without --data: it names columns of that file")
    name = data or texts or "-"
    check_readable(name)
    opened = Run.open(run, notice=notice)
    opened.require_task("tag")
    columns = columns or opened.settings.data.columns
    opened.require_weights(which)
    tagger = import_quietly("keras_seq.inference.tagger").Tagger.load(
        run, which=which, batch_size=batch_size, notice=notice
    )
    if data is not None:
        from keras_seq.scoring import tag_scores

        found: tuple[list[list[str]], list[list[str]]] = ([], [])
        pairs = read_labelled(data, tagged=True, columns=columns, notice=notice)
        while chunk := list(itertools.islice(pairs, _LINES)):
            found[0].extend(words_of(tags) for _, tags in chunk)
            found[1].extend(list(one.tags) for one in tagger.tag([text for text, _ in chunk]))
        if not any(found[0]):
            raise InputError(f"{data}: no words with tags, there is nothing to score")
        emit([tag_scores(*found).table()])
        return
    lines = read_lines(name, notice=notice)

    def written() -> Iterator[str]:
        while chunk := list(itertools.islice(lines, _LINES)):
            for text, one in zip(chunk, tagger.tag(chunk), strict=True):
                yield _line(text, one, output_format)

    emit(written())


def _line(text: str, found: Any, output_format: str) -> str:
    tags = " ".join(found.tags)
    if output_format == "text":
        return tags
    if output_format == "tsv":
        # A tab within a text would make it two columns.
        return f"{' '.join(found.words)}\t{tags}"
    return json.dumps({"words": found.words, "tags": found.tags}, ensure_ascii=False)
