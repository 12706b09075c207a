"""`keras-seq clean`: removes pairs that harm a training."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keras_seq_cli.output import check_writable, emit, notice
from keras_seq_cli.progress import Progress, shows_progress
from keras_seq_cli.shared_options import Json

if TYPE_CHECKING:
    from keras_seq.cleaning import Cleaner
    from keras_seq.text import Example, PairFiles

# Pairs between updates of the progress.
_PROGRESS = 1000
_FILES = "repeatable, or a pattern, plain or .gz."


def clean(
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", help="File for the kept source<TAB>target lines; gzipped for .gz."
        ),
    ] = None,
    pairs: Annotated[
        list[str] | None, typer.Option(help=f"source<TAB>target lines, or CSV; {_FILES}")
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option(help=f"Source sentences, one per line; {_FILES}")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="Target sentences, parallel to --source.")
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option(help=f"Lines of text in one language; {_FILES}")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Columns of --pairs, by number or header, as in source=1,target=3."),
    ] = None,
    held_out: Annotated[
        list[str] | None,
        typer.Option(
            help="Validation or test file of lines or tab-separated columns, or a pattern, whose "
            "texts are removed; repeatable."
        ),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Do not apply this rule; repeatable."),
    ] = None,
    max_characters: Annotated[
        int, typer.Option(min=1, help="Maximum length of a side, for the rule `length`.")
    ] = 1000,
    removed: Annotated[
        str | None, typer.Option(help="File for the removed lines, each after its rule and a tab.")
    ] = None,
    samples: Annotated[int, typer.Option(min=0, help="Removed pairs to print for each rule.")] = 3,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be removed; write nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove foreign, damaged, repeated and uneven pairs, and say what went and why.

    The rules learn scripts, letters and lengths from the files themselves. They are: empty,
    damaged, length, script, language, ratio, copy, held-out and duplicate.
    """
    from keras_seq.cleaning import Cleaner
    from keras_seq.text import InputError, PairFiles, check_readable, expand_names, read_lines

    if (output is None) != dry_run:
        problem = "not with --dry-run" if dry_run else "expected a file, or --dry-run"
        raise typer.BadParameter(problem, param_hint="'--output'")
    if removed is not None and dry_run:
        raise typer.BadParameter("not with --dry-run", param_hint="'--removed'")
    if columns is not None and pairs is None:
        raise typer.BadParameter("needs --pairs", param_hint="'--columns'")
    files = PairFiles(pairs=pairs, source=source, target=target, text=text, columns=columns)
    files.check()
    tests = expand_names(held_out or ())
    _check_outputs([output, removed], [*itertools.chain(*files.names.values()), *tests])
    if files.has_languages:
        raise InputError(
            "--columns: received target_language, expected source, target or features: the rules "
            "expect one language on each side, so clean each pair of languages by itself"
        )
    for name in tests:
        check_readable(name)
        if name.removesuffix(".gz").endswith(".csv"):
            raise InputError(f"{name}: expected lines or tab-separated columns, received CSV")
    lines = (line for name in tests for line in read_lines(name, notice=notice))
    cleaner = Cleaner(
        files,
        skip=skip or (),
        max_characters=max_characters,
        held_out=(cell for line in lines for cell in line.split("\t") if cell.strip()),
        num_samples=samples,
    )
    for note in cleaner.notes:
        notice(note)
    with (
        _opened(output) as write,
        _opened(removed) as write_removed,
        Progress(None, shows_progress(None, output or "")) as progress,
    ):
        progress.resume()
        for number, (example, reason) in enumerate(cleaner.read(), 1):
            if number % _PROGRESS == 0:
                progress.advance(_PROGRESS)
            if reason is None:
                write(_line(example, files))
            else:
                write_removed(f"{reason}\t{_line(example, files)}")
        if not cleaner.kept and not dry_run:
            for line in _report(cleaner, files):
                notice(line)
            rules = ", ".join(cleaner.removed)
            raise InputError(f"{files}: no {files.unit} is left; the rules that removed: {rules}")
    emit(_json(cleaner) if as_json else _report(cleaner, files))


def _check_outputs(outputs: Sequence[str | None], inputs: Sequence[str]) -> None:
    """Raises InputError if an output cannot be written, or is an input or another output."""
    from keras_seq.text import InputError

    names = [path for path in outputs if path is not None]
    for number, path in enumerate(names):
        check_writable(path)
        if path == "-":
            raise InputError("--output: received -, expected the name of a file")
        for other in (*inputs, *names[:number]):
            is_same = Path(path).absolute() == Path(other).absolute()
            if is_same or (Path(path).exists() and os.path.samefile(path, other)):
                raise InputError(f"{path}: would replace {other}: name another file")


@contextlib.contextmanager
def _opened(path: str | None) -> Iterator[Callable[[str], object]]:
    """Opens a file that replaces `path` at the end; yields a function that writes lines."""
    from keras_seq.storage import atomic_lines

    if path is None:
        yield lambda line: None
        return
    with atomic_lines(Path(path)) as write:
        yield write


def _line(example: Example, files: PairFiles) -> str:
    """Returns the line of a pair, with its features last; a tab within a side becomes a space."""
    if files.has_features:
        source, _, features = example.source.partition("\t")
        columns = [source, example.target, features]
    else:
        columns = [example.target] if example.target_only else [example.source, example.target]
    return "\t".join(column.replace("\t", " ") for column in columns)


def _report(cleaner: Cleaner, files: PairFiles) -> Iterator[str]:
    from keras_seq.cleaning import RULES

    total = cleaner.kept + cleaner.removed.total()
    unit = files.unit
    for name, description in RULES.items():
        if count := cleaner.removed[name]:
            yield f"{name:<10}{count:>12,}  {count / total:>7.2%}  {description}"
    yield f"{'kept':<10}{cleaner.kept:>12,}  {cleaner.kept / total:>7.2%}  of {total:,} {unit}s"
    for name in RULES:
        examples = cleaner.samples.get(name)
        if not examples:
            continue
        yield ""
        yield f"{name}, for example:"
        for example in examples:
            yield f"  {_line(example, files)}"


def _json(cleaner: Cleaner) -> Iterator[str]:
    report = {
        "kept": cleaner.kept,
        "removed": dict(cleaner.removed),
        "samples": {
            name: [[example.source, example.target] for example in examples]
            for name, examples in cleaner.samples.items()
        },
    }
    yield json.dumps(report, ensure_ascii=False, indent=1)
