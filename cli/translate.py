"""`keras-seq translate`: line N in, line N out."""

from __future__ import annotations

import contextlib
import enum
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.search_options import with_search_options
from keras_seq_cli.signals import sigterm_exits


class Engine(enum.StrEnum):
    """What computes, and where; Typer has no list of literals."""

    TENSORFLOW = "tensorflow"
    CTRANSLATE2 = "ctranslate2"
    RAY = "ray"


@with_search_options
def translate(
    run: Annotated[str, typer.Argument(help="Directory that train made.")],
    text: Annotated[
        str | None, typer.Argument(help="A sentence, or a file of them; stdin if absent.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="File to write; stdout if absent.")
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Write score<TAB>translation.")] = False,
    engine: Annotated[
        list[Engine] | None,
        typer.Option(
            help="What computes: tensorflow, or ctranslate2 (an extra, for Transformers). And ray "
            "(an extra), for the workers of --input to be on a Ray cluster. May be given twice.",
        ),
    ] = None,
    quantize: Annotated[
        str | None, typer.Option(help="Arithmetic of ctranslate2: float32 or int8.")
    ] = None,
    prefixes: Annotated[
        str | None,
        typer.Option(help="File: what the translation of each line begins with, or a blank line."),
    ] = None,
    ensemble: Annotated[
        list[str] | None,
        typer.Option(
            help="Another run, with the same vocabulary, that translates together with this one; "
            "may be given again."
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="File to translate, or 'texts/*.en'; may be given again."),
    ] = None,
    output_dir: Annotated[
        str | None, typer.Option(help="Directory for a file for each --input, of the same name.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes for --input; one for each 4 cores if absent."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete what another job left in --output-dir.")
    ] = False,
    *,
    search: dict[str, Any],
) -> None:
    """Translate lines: a sentence, a file, or stdin; or many files. A blank line stays blank.

    With --input the same command again goes on where the last one was stopped or killed.
    """
    from keras_seq.run import Run
    from keras_seq.settings import load_settings
    from keras_seq.text import InputError
    from keras_seq.threads import share_cores, usable_cores

    opened = Run.open(run, notice=notice)
    opened.require_weights()
    settings = load_settings(
        base=opened.settings.to_dict(),
        overrides={f"search.{key}": value for key, value in search.items()},
    ).search
    computing, on_ray = _engines(engine or [])
    if quantize is not None and computing != "ctranslate2":
        raise typer.BadParameter("needs --engine ctranslate2", param_hint="'--quantize'")
    for name, given in (("ensemble", ensemble), ("prefixes", prefixes)):
        if given and (inputs or computing == "ctranslate2"):
            unfit = "--input" if inputs else "--engine ctranslate2"
            raise typer.BadParameter(f"not with {unfit}", param_hint=f"'--{name}'")
    if inputs:
        if output_dir is None or text is not None or output is not None:
            raise typer.BadParameter(
                "needs --output-dir, and no other text or --output", param_hint="'--input'"
            )
        if computing == "ctranslate2":
            # What is wrong with it is said before there are any workers.
            _ctranslate2(run, quantize, search)
        _translate_files(
            run,
            inputs,
            output_dir,
            on_ray=on_ray,
            search=search,
            engine=computing,
            quantize=quantize or "float32",
            scores=scores,
            workers=workers,
            overwrite=overwrite,
        )
        return
    for name, needless in (
        ("output-dir", output_dir is not None),
        ("workers", workers is not None),
        ("overwrite", overwrite),
        ("engine", on_ray),
    ):
        if needless:
            said = "ray is for the files of --input" if name == "engine" else "needs --input"
            raise typer.BadParameter(said, param_hint=f"'--{name}'")
    lines = _lines(text, output)
    beginnings = _prefixes(prefixes)
    translator: Any = None
    if computing == "ctranslate2":
        # Here, because it takes no time and what is wrong is said before a file is opened.
        translator = _ctranslate2(run, quantize, search)

    def translated(chunk: list[str], first: int) -> Iterator[str]:
        nonlocal translator
        # Importing TensorFlow takes seconds, and blank lines need none.
        if translator is None and any(line.strip() for line in chunk):
            share_cores(1 if prompt else usable_cores())
            heavy = import_quietly("keras_seq.translator")
            translator = heavy.Translator.load(
                run, ensemble=ensemble or (), notice=notice, **search
            )
        begun = _next_prefixes(beginnings, len(chunk), prefixes)
        return _format(translator, chunk, begun, first, settings.n_best, scores)

    prompt = text is None and output is None and sys.stdin.isatty()
    # Many batches at a time, so that lines of like length share one.
    size = 1 if prompt else 64 * settings.batch_size
    with _writer(output) as write:
        number = 1
        for chunk in _chunks(_prompted(lines) if prompt else lines, size):
            write(translated(chunk, number))
            number += len(chunk)
        if beginnings is not None and next(beginnings, None) is not None:
            raise InputError(f"{prefixes}: has more lines than the input ({number - 1:,})")


def _engines(given: Sequence[Engine]) -> tuple[str, bool]:
    """What computes, and whether on Ray."""
    computing = sorted({engine.value for engine in given} - {"ray"})
    if len(computing) > 1:
        raise typer.BadParameter(
            "tensorflow or ctranslate2, not both: either may be given with ray",
            param_hint="'--engine'",
        )
    return (computing or ["tensorflow"])[0], Engine.RAY in given


def _ctranslate2(run: str, quantize: str | None, search: dict[str, Any]) -> Any:
    from keras_seq.serving.ctranslate2_translator import CTranslate2Translator

    return CTranslate2Translator.load(run, quantize=quantize or "float32", notice=notice, **search)


def _translate_files(
    run: str, inputs: list[str], directory: str, *, on_ray: bool, **options: Any
) -> None:
    from keras_seq.jobs import require_ray, run_locally, run_on_ray, translate_files

    if on_ray:
        require_ray()
    with sigterm_exits():
        done = translate_files(
            run,
            inputs,
            directory,
            runner=run_on_ray if on_ray else run_locally,
            notice=notice,
            **options,
        )
    notice(f"{directory}: {done.files:,} files of {done.lines:,} lines are translated")


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
        folder = Path(output).absolute().parent
        if Path(output).is_dir() or not folder.is_dir():
            raise InputError(f"{output}: cannot be written: not a file in a directory that exists")
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


def _format(
    translator: Any,
    lines: list[str],
    prefixes: list[str] | None,
    first: int,
    n_best: int,
    scores: bool,
) -> Iterator[str]:
    from keras_seq.lines import cut_notice, numbered, written_lines

    found: list[Any] = [[]] * len(lines)
    if translator is not None:
        # CTranslate2 takes no prefixes.
        given = {} if prefixes is None else {"prefixes": prefixes}
        found = translator.translate(lines, **given)
    yield from written_lines(found, first, n_best=n_best, scores=scores)
    if said := cut_notice(found, numbered(first, len(lines))):
        notice(said)


@contextlib.contextmanager
def _writer(output: str | None) -> Iterator[Callable[[Iterator[str]], None]]:
    if output is None:
        yield emit
        return
    with open(output, "w", encoding="utf-8", newline="\n", errors="replace") as stream:
        yield lambda lines: stream.writelines(f"{line}\n" for line in lines)
