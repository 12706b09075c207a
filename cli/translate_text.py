"""One text of `keras-seq translate`: lines in, lines out, and pictures beside them."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import typer

from keras_seq_cli.output import emit, notice, why_not_written
from keras_seq_cli.output_options import OutputOptions
from keras_seq_cli.progress import Progress, said_meanwhile, wants_progress


class Model(Protocol):
    """What translates: `RunModel`, `ExportModel`.

    Attributes:
        run: Its directory, as it was given.
        n_best: Translations of a line.
        batch_size: Lines translated at a time.
        translator: What has `translate`, None until it is loaded.
        target_tokenizer: Names the tokens of a translation; None where that cannot be.
    """

    run: str
    n_best: int
    batch_size: int
    translator: Any

    @property
    def target_tokenizer(self) -> Any: ...

    def load(self) -> None: ...

    def pictures(self) -> list[Any]: ...

    def explain(self) -> Any: ...


@dataclass(frozen=True)
class TextJob:
    """What `translate` was told, besides what translates, and where lines come from and go to."""

    prefixes: str | None
    scores: bool
    shown: OutputOptions


def translate_text(model: Model, text: str | None, output: str | None, job: TextJob) -> None:
    """Translates a sentence, a file or stdin.

    Args:
        model: What translates.
        text: A sentence or the name of a file; None for stdin.
        output: File for the result; None for stdout.
        job: How.
    """
    from keras_seq.text import InputError, count_lines

    lines = _lines(text, output)
    shown = job.shown
    shown.check_files(text, output, job.prefixes)
    beginnings = _prefixes(job.prefixes)
    prompt = text is None and output is None and sys.stdin.isatty()
    # Many batches at a time, so that lines of like length share one.
    size = 1 if prompt or shown.stream else 64 * model.batch_size
    answers = _Answers(model, job, one_at_a_time=size == 1)
    shows = wants_progress(shown.progress, output) and not prompt
    total = None
    if shows and text is not None and os.path.isfile(text):
        total = count_lines(text)
    with _writer(output) as write:
        if shown.stream:
            answers.start()
        write(answers.header())
        number = 1
        with Progress(total, shows) as progress:
            for chunk in _chunks(_prompted(lines) if prompt else lines, size):
                begun = _next_prefixes(beginnings, len(chunk), job.prefixes)
                if answers.must_load(chunk):
                    progress.pause()
                    answers.load()
                progress.go_on()
                write(answers(chunk, begun, number))
                answers.draw()
                number += len(chunk)
                progress.done(len(chunk))
        if beginnings is not None and next(beginnings, None) is not None:
            raise InputError(f"{job.prefixes}: has more lines than the input ({number - 1:,})")
    answers.finish()


class _Answers:
    """Translations of lines as they are written."""

    def __init__(self, model: Model, job: TextJob, *, one_at_a_time: bool) -> None:
        from keras_seq.inference.output_formats import OutputFormat

        self._model = model
        self._shown = shown = job.shown
        self._one_at_a_time = one_at_a_time
        self._drawn: tuple[int, list[str], Any] | None = None
        self._format = OutputFormat(
            shown.format,
            n_best=model.n_best,
            scores=job.scores,
            links=shown.alignment == "hard",
            target_tokenizer=model.target_tokenizer if shown.format == "jsonl" else None,
        )
        self._pictures = model.pictures()

    def start(self) -> None:
        """Loads the model and compiles the search before there is anything to translate."""
        if self._model.translator is None:
            self.load()
        self._model.translator.translate(["."])

    def must_load(self, lines: list[str]) -> bool:
        """Whether some lines are the first that need the model."""
        # Importing TensorFlow takes seconds, and blank lines need none.
        return self._model.translator is None and any(line.strip() for line in lines)

    def header(self) -> Iterator[str]:
        """What comes before the first line."""
        return self._format.header()

    def __call__(self, lines: list[str], prefixes: list[str] | None, first: int) -> Iterator[str]:
        """What is written for some lines."""
        from keras_seq.inference.output_formats import line_range, truncation_notice

        found: list[Any] = [[]] * len(lines)
        aligned: list[Any] = [None] * len(lines)
        if self._model.translator is not None:
            given = {} if prefixes is None else {"prefixes": prefixes}
            found = self._model.translator.translate(lines, **given)
        if (self._shown.alignment or self._shown.replace_unknown) and any(found):
            found, of_lines = self._model.explain()(lines, found)
            aligned = of_lines or aligned
        for number, (line, hypotheses, of_line) in enumerate(
            zip(lines, found, aligned, strict=True), first
        ):
            yield from self._format.lines(number, line, hypotheses, of_line)
        if said := truncation_notice(found, line_range(first, len(lines))):
            notice(said)
        self._drawn = first, lines, found

    def draw(self) -> None:
        """Makes pictures of what was written last."""
        if self._drawn is not None:
            for pictures in self._pictures:
                pictures.add(*self._drawn)
        self._drawn = None

    def finish(self) -> None:
        """Writes pictures that are written at the end."""
        for pictures in self._pictures:
            pictures.finish()

    def load(self) -> None:
        """Loads the model."""
        from keras_seq.runtime.threads import configure_threads, usable_cores

        configure_threads(1 if self._one_at_a_time else usable_cores())
        with said_meanwhile(f"loading {self._model.run}"):
            self._model.load()


def _lines(text: str | None, output: str | None) -> Iterator[str]:
    from keras_seq.text import InputError, check_readable, read_lines

    # os.path, because a pathlib.Path of a long sentence is an error.
    if text is not None and output is None and text != "-" and not os.path.exists(text):
        if text and not any(character.isspace() for character in text) and set("./") & set(text):
            notice(f"there is no file {text!r}: translating the text itself")
        return iter(text.split("\n"))
    name = text if text is not None else "-"
    check_readable(name)
    if output is not None:
        if wrong := why_not_written(output):
            raise InputError(wrong)
        if name != "-" and Path(output).exists() and os.path.samefile(name, output):
            raise InputError(f"{output}: input and output are the same file")
    return read_lines(name, errors="replace", notice=notice)


def _prefixes(path: str | None) -> Iterator[str] | None:
    from keras_seq.text import check_readable, read_lines

    if path is None:
        return None
    check_readable(path)
    return read_lines(path, notice=notice)


def _next_prefixes(
    beginnings: Iterator[str] | None, count: int, path: str | None
) -> list[str] | None:
    from keras_seq.text import InputError

    if beginnings is None:
        return None
    begun = list(itertools.islice(beginnings, count))
    if len(begun) < count:
        raise InputError(f"{path}: has fewer lines than the input")
    return begun


def _chunks(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    while chunk := list(itertools.islice(lines, size)):
        yield chunk


def _prompted(lines: Iterator[str]) -> Iterator[str]:
    while True:
        typer.echo("> ", nl=False, err=True)
        line = next(lines, None)
        if line is None:
            typer.echo(err=True)
            return
        yield line


@contextlib.contextmanager
def _writer(output: str | None) -> Iterator[Callable[[Iterator[str]], None]]:
    if output is None:
        yield emit
        return
    # Compressed where it will be read so.
    write_to: Any = gzip.open if output.endswith(".gz") else open
    with write_to(output, "wt", encoding="utf-8", newline="\n", errors="replace") as stream:

        def write(lines: Iterator[str]) -> None:
            stream.writelines(f"{line}\n" for line in lines)
            stream.flush()

        yield write
