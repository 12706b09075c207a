"""`keras-seq detect`: finds wake words in recordings."""

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
_SOUNDS = 64


def detect(
    run: Annotated[str, typer.Argument(help="Run directory of a wake word detector.")],
    sounds: Annotated[
        list[str] | None,
        typer.Argument(help="WAV, FLAC, OGG or MP3 files; by default their paths from stdin."),
    ] = None,
    output_format: Annotated[
        Literal["tsv", "jsonl"],
        typer.Option(
            "--format",
            help="tsv: path, seconds, word and probability of each detection; jsonl: one object "
            "per recording.",
        ),
    ] = "tsv",
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Least probability; by default the best for the validation set."
        ),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Recordings per batch.")
    ] = None,
    which: Which = "best",
) -> None:
    """Print the words that are detected in each recording, and when.

    Recordings of another sampling rate than the training had are converted.
    """
    from keras_seq.run import Run
    from keras_seq.text import read_lines

    opened = Run.open(run, notice=notice)
    opened.require_task("wake-word")
    opened.require_weights(which)
    options = {"threshold": threshold, "batch_size": batch_size}
    given = {name: value for name, value in options.items() if value is not None}
    detector = import_quietly("keras_seq.inference.wake_words").WakeWordDetector.load(
        run, which=which, notice=notice, **given
    )
    paths = iter(sounds) if sounds else read_lines("-", notice=notice)
    emit(_found(detector, paths, output_format))


def _found(detector: Any, paths: Iterator[str], output_format: str) -> Iterator[str]:
    while chunk := list(itertools.islice(paths, _SOUNDS)):
        for path, found in zip(chunk, detector.detect_files(chunk), strict=True):
            yield from _lines(path, found, output_format)


def _lines(path: str, found: Sequence[Any], output_format: str) -> Iterator[str]:
    if output_format == "tsv":
        yield from (
            f"{path}\t{one.seconds:.3f}\t{one.word}\t{one.probability:.4f}" for one in found
        )
    else:
        detections = [one._asdict() for one in found]
        yield json.dumps({"path": path, "detections": detections}, ensure_ascii=False)
