"""`keras-seq transcribe`: recognizes the text of recordings."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.shared_options import Which

# Recordings per call of the model, to limit the memory.
_SOUNDS = 256


def transcribe(
    run: Annotated[str, typer.Argument(help="Run directory of a speech recognizer.")],
    sounds: Annotated[
        list[str] | None,
        typer.Argument(help="WAV, FLAC, OGG or MP3 files; by default their paths from stdin."),
    ] = None,
    output_format: Annotated[
        Literal["text", "tsv", "jsonl"],
        typer.Option(
            "--format",
            help="text: the most probable text; tsv: path, text and log-probability, of each of "
            "--n-best texts; jsonl: one object per recording.",
        ),
    ] = "text",
    beam_size: Annotated[
        int | None, typer.Option(min=1, help="Beam size; 1 takes the best label of each step.")
    ] = None,
    n_best: Annotated[int | None, typer.Option(min=1, help="Texts per recording.")] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Recordings per batch.")
    ] = None,
    which: Which = "best",
) -> None:
    """Print the text of each recording.

    Recordings of another sampling rate than the training had are converted. Recordings without
    sound have the empty text.
    """
    from keras_seq.run import Run
    from keras_seq.text import read_lines

    opened = Run.open(run, notice=notice)
    opened.require_task("speech")
    opened.require_weights(which)
    options = {"beam_size": beam_size, "n_best": n_best, "batch_size": batch_size}
    search = {name: value for name, value in options.items() if value is not None}
    if n_best is not None and output_format == "text":
        raise typer.BadParameter("needs --format tsv or jsonl", param_hint="--n-best")
    opened.settings.with_search(search)
    recognizer = import_quietly("keras_seq.inference.recognizer").Recognizer.load(
        run, which=which, notice=notice, **search
    )
    paths = iter(sounds) if sounds else read_lines("-", notice=notice)
    emit(_transcripts(recognizer, paths, output_format))


def _transcripts(recognizer: Any, paths: Iterator[str], output_format: str) -> Iterator[str]:
    while chunk := list(itertools.islice(paths, _SOUNDS)):
        for path, texts in zip(chunk, recognizer.recognize_files(chunk), strict=True):
            yield from _lines(path, texts, output_format)


def _lines(path: str, texts: Sequence[Any], output_format: str) -> Iterator[str]:
    if output_format == "text":
        yield texts[0].text
    elif output_format == "tsv":
        yield from (f"{path}\t{text.text}\t{text.score:.4f}" for text in texts)
    else:
        ranked = [{"text": text.text, "score": text.score} for text in texts]
        yield json.dumps({"path": path, "texts": ranked}, ensure_ascii=False)
