"""Translation of one text with `keras-seq translate`, with formatted output and pictures."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import typer

from keras_seq_cli.output import check_writable, emit, notice
from keras_seq_cli.output_options import OutputOptions
from keras_seq_cli.progress import Progress, shows_progress, status_line


class Model(Protocol):
    """Interface of `RunModel` and `ExportModel`.

    Attributes:
        run: Directory of the run or the export.
        n_best: Number of translations per line.
        batch_size: Lines per batch.
        translator: Object with a method `translate`; None until the model is loaded.
        source_tokenizer, target_tokenizer: The tokenizers; None for an export.
        languages: The target languages of the model; empty for a model without.
    """

    run: str
    n_best: int
    batch_size: int
    translator: Any

    @property
    def source_tokenizer(self) -> Any: ...

    @property
    def target_tokenizer(self) -> Any: ...

    @property
    def languages(self) -> Collection[str]: ...

    def load(self) -> None: ...

    def pictures(self) -> list[Any]: ...

    def explain(self) -> Any: ...


@dataclass(frozen=True)
class TextJob:
    """Options of `translate_text`.

    Attributes:
        prefixes: File with the beginning of each translation, or None.
        scores: Boolean, whether to print scores.
        outputs: The output options.
        to: The target language; None if the model has no languages or each line names its own.
    """

    prefixes: str | None
    scores: bool
    outputs: OutputOptions
    to: str | None = None


def translate_text(model: Model, text: str | None, output: str | None, job: TextJob) -> None:
    """Translates a sentence, a file or stdin.

    Args:
        model: The model.
        text: A sentence or the name of a file; None for stdin.
        output: File for the result; None for stdout.
        job: The options.
    """
    from keras_seq.text import InputError, count_lines

    lines = _lines(text, output)
    outputs = job.outputs
    outputs.check_files(text, output, job.prefixes)
    prefixes = _prefixes(job.prefixes)
    interactive = text is None and output is None and sys.stdin.isatty()
    # Lines are sorted by length within a chunk, so large chunks reduce padding.
    size = 1 if interactive or outputs.stream else 64 * model.batch_size
    writer = _TranslationWriter(model, job, one_at_a_time=size == 1)
    enabled = shows_progress(outputs.progress, output) and not interactive
    total = None
    if enabled and text is not None and os.path.isfile(text):
        total = count_lines(text)
    with _open_output(output) as write:
        if outputs.stream:
            writer.start()
        write(writer.header())
        number = 1
        with Progress(total, enabled) as progress:
            for chunk in _chunks(_prompt_lines(lines) if interactive else lines, size):
                chunk_prefixes = _next_prefixes(prefixes, len(chunk), job.prefixes)
                # Reports a line without a language before the model is loaded.
                writer.sources(chunk)
                if writer.must_load(chunk):
                    progress.pause()
                    writer.load()
                progress.resume()
                write(writer(chunk, chunk_prefixes, number))
                writer.draw()
                number += len(chunk)
                progress.advance(len(chunk))
        if prefixes is not None and next(prefixes, None) is not None:
            raise InputError(f"{job.prefixes}: has more lines than the input ({number - 1:,})")
    writer.finish()


class _TranslationWriter:
    """Translates lines and formats the output.

    Args:
        model: The model.
        job: The options.
        one_at_a_time: Boolean, whether each call translates only one line.
    """

    def __init__(self, model: Model, job: TextJob, *, one_at_a_time: bool) -> None:
        from keras_seq.inference.output_formats import OutputFormat
        from keras_seq.text import with_languages

        self._model = model
        self._outputs = outputs = job.outputs
        self._to = job.to
        # Checks the language before the model is loaded.
        with_languages((), model.languages, job.to)
        self._one_at_a_time = one_at_a_time
        self._undrawn: tuple[int, list[str], Any] | None = None
        self._format = OutputFormat(
            outputs.format,
            n_best=model.n_best,
            scores=job.scores,
            links=outputs.alignment == "hard",
            target_tokenizer=model.target_tokenizer if outputs.format == "jsonl" else None,
        )
        self._pictures = model.pictures()

    def start(self) -> None:
        """Loads the model and compiles the search before the first line arrives."""
        if self._model.translator is None:
            self.load()
        languages = self._model.languages
        self._model.translator.translate(["."], to=self._to or next(iter(languages), None))

    def must_load(self, lines: list[str]) -> bool:
        """Returns whether the model must be loaded before these lines are translated."""
        # Blank lines do not need the model, and importing TensorFlow takes seconds.
        return self._model.translator is None and any(line.strip() for line in lines)

    def sources(self, lines: list[str]) -> list[str]:
        """Returns the lines as the model reads them; see `with_languages`."""
        from keras_seq.text import with_languages

        return with_languages(lines, self._model.languages, self._to)

    def header(self) -> Iterator[str]:
        """Returns the header lines of the output format."""
        return self._format.header()

    def __call__(self, lines: list[str], prefixes: list[str] | None, first: int) -> Iterator[str]:
        """Translates lines and yields the formatted output.

        Args:
            lines: The lines.
            prefixes: Beginnings of the translations, or None.
            first: Number of the first line, from 1.
        """
        from keras_seq.inference.output_formats import line_range, truncation_notice
        from keras_seq.text import feature_notice

        sources = self.sources(lines)
        translations: list[Any] = [[]] * len(lines)
        alignments: list[Any] = [None] * len(lines)
        if self._model.translator is not None:
            options = {} if prefixes is None else {"prefixes": prefixes}
            translations = self._model.translator.translate(sources, **options)
            if message := feature_notice(lines, self._model.source_tokenizer):
                notice(f"{line_range(first, len(lines))}: {message}")
        if (self._outputs.alignment or self._outputs.replace_unknown) and any(translations):
            translations, explained = self._model.explain()(sources, translations)
            alignments = explained or alignments
        for number, (line, hypotheses, alignment) in enumerate(
            zip(lines, translations, alignments, strict=True), first
        ):
            yield from self._format.lines(number, line, hypotheses, alignment)
        if message := truncation_notice(translations, line_range(first, len(lines))):
            notice(message)
        self._undrawn = first, sources, translations

    def draw(self) -> None:
        """Draws pictures of the lines of the last call."""
        if self._undrawn is not None:
            for pictures in self._pictures:
                pictures.add(*self._undrawn)
        self._undrawn = None

    def finish(self) -> None:
        """Writes the picture files."""
        for pictures in self._pictures:
            pictures.finish()

    def load(self) -> None:
        """Loads the model and shows a status line."""
        from keras_seq.operating_system import usable_cores
        from keras_seq.process.threads import configure_threads

        configure_threads(1 if self._one_at_a_time else usable_cores())
        with status_line(f"loading {self._model.run}"):
            self._model.load()


def _lines(text: str | None, output: str | None) -> Iterator[str]:
    """Checks the input and the output file, and returns the input lines."""
    from keras_seq.text import InputError, check_readable, read_lines

    # Use `os.path`, because `Path.exists` raises an error for a long sentence.
    if text is not None and output is None and text != "-" and not os.path.exists(text):
        if text and not any(character.isspace() for character in text) and set("./") & set(text):
            notice(f"there is no file {text!r}: translating the text itself")
        return iter(text.split("\n"))
    name = text if text is not None else "-"
    check_readable(name)
    if output is not None:
        check_writable(output)
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
    prefixes: Iterator[str] | None, count: int, path: str | None
) -> list[str] | None:
    from keras_seq.text import InputError

    if prefixes is None:
        return None
    chunk = list(itertools.islice(prefixes, count))
    if len(chunk) < count:
        raise InputError(f"{path}: has fewer lines than the input")
    return chunk


def _chunks(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    while chunk := list(itertools.islice(lines, size)):
        yield chunk


def _prompt_lines(lines: Iterator[str]) -> Iterator[str]:
    """Prints a prompt before each input line, and yields the lines."""
    while True:
        typer.echo("> ", nl=False, err=True)
        line = next(lines, None)
        if line is None:
            typer.echo(err=True)
            return
        yield line


@contextlib.contextmanager
def _open_output(output: str | None) -> Iterator[Callable[[Iterator[str]], None]]:
    """Opens the output file, gzipped for `.gz`; yields a function that writes lines."""
    if output is None:
        yield emit
        return
    from keras_seq.storage import named_errors

    open_file: Any = gzip.open if output.endswith(".gz") else open
    with named_errors(output):
        stream = open_file(output, "wt", encoding="utf-8", newline="\n", errors="replace")

    def write(lines: Iterator[str]) -> None:
        # Errors of the translation do not concern the file.
        finished = [f"{line}\n" for line in lines]
        with named_errors(output):
            stream.writelines(finished)
            stream.flush()

    try:
        yield write
    finally:
        with named_errors(output):
            stream.close()
