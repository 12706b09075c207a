"""The target of the fuzzers that runs commands on damaged files, in this process.

The first line of an input names a command, and the second one of its files, which has the rest as
its content. The other files of the command are undamaged.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import hypothesis.strategies as st
import typer
from fuzzing.mutations import damaged_bytes, json_files, settings_files
from tuning.known_training import KnownTraining, distance

from keras_seq.settings.settings import walk_fields
from keras_seq.tuning import Tuning
from keras_seq_cli import main as program

LINES = b"a dog runs\ntwo cats sleep\nthe bird sings\n"
PAIRS = b"a dog runs\tein Hund rennt\ntwo cats sleep\tzwei Katzen schlafen\nup\tauf\n"
LABELED = b"a good dog\tgood\na bad cat\tbad\nfine weather\tgood\n" * 2
TAGGED = b"a dog runs\tDET NOUN VERB\ntwo cats\tNUM NOUN\n" * 2
VECTORS = b"3 2\ndog 1 0.5\ncat 0.5 1\nbird -1 0\n"
SETTINGS = b'seed = 1\n[data]\nmax_source_length = 9\n[model]\nfamily = "transformer"\n'
# Without plugins, whose settings name modules to import, and presets to download.
NEVER = ("plugins", "training.from_hub")


class Command(NamedTuple):
    """The arguments of a command, and the contents of files by name, of which some are damaged.

    By default, all files are damaged.
    """

    arguments: str
    files: dict[str, bytes]
    damaged: tuple[str, ...] = ()


COMMANDS = {
    "score": Command(
        "score out.txt --reference ref.txt --json", {"out.txt": LINES, "ref.txt": LINES}
    ),
    "score-pairwise": Command(
        "score out.txt other.txt -r ref.txt --metric chrf --paired bootstrap --samples 2",
        {"out.txt": LINES, "other.txt": LINES.upper(), "ref.txt": LINES},
    ),
    "clean": Command(
        "clean --pairs pairs.tsv --held-out test.txt --dry-run",
        {"pairs.tsv": PAIRS, "test.txt": LINES},
    ),
    "clean-table": Command(
        "clean --pairs pairs.csv --columns source=1,target=2 --dry-run --json",
        {"pairs.csv": b"en,de\na dog,ein Hund\ntwo cats,zwei Katzen\n"},
    ),
    "noise": Command("augment noise pairs.tsv -o out.tsv", {"pairs.tsv": PAIRS}),
    "copy": Command("augment copy lines.txt -o out.tsv", {"lines.txt": LINES}),
    "nearest": Command("vectors nearest vectors.txt dog", {"vectors.txt": VECTORS}),
    "analogy": Command("vectors analogy vectors.txt dog cat bird", {"vectors.txt": VECTORS}),
    "prepare-labels": Command(
        "prepare new --task classify --labeled text.tsv --valid-labeled valid.tsv",
        {"text.tsv": LABELED, "valid.tsv": LABELED},
    ),
    "prepare-tags": Command(
        "prepare new --task tag --labeled text.tsv --valid-labeled valid.tsv",
        {"text.tsv": TAGGED, "valid.tsv": TAGGED},
    ),
    # Without text, this trains nothing.
    "train": Command("train new --settings settings.toml --dry-run", {"settings.toml": SETTINGS}),
}
# Exit codes of commands that end well or refuse their input.
CODES = (0, 2)


def tune_command(folder: Path) -> Command:
    """Returns a finished search of settings, which is resumed."""
    for name, content in {"pairs.tsv": PAIRS * 20, "valid.tsv": PAIRS}.items():
        (folder / name).write_bytes(content)
    arguments = (
        "tune search --minutes 27 --trials 2 --pairs pairs.tsv --valid-pairs valid.tsv "
        "--preset transformer-tiny --search training.learning_rate=1e-3,1e-2"
    )
    with without_slow_parts():
        code, printed = run(folder, arguments.split())
    assert code == 0, printed
    paths = [path for path in folder.rglob("*") if path.is_file()]
    files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    return Command(arguments, files, ("search/tuning.json",))


def command_files(commands: Mapping[str, Command]) -> st.SearchStrategy[bytes]:
    """Returns damaged files of commands."""
    keys = [key for key, _ in walk_fields() if not key.startswith(NEVER)]
    others = [
        st.tuples(st.just(f"{name}\n{file}\n".encode()), _damaged(file, command.files[file], keys))
        for name, command in commands.items()
        for file in command.damaged or command.files
    ]
    return st.one_of(others).map(b"".join)


def _damaged(file: str, content: bytes, keys: list[str]) -> st.SearchStrategy[bytes]:
    if file.endswith(".json"):
        return json_files(json.loads(content))
    damaged = damaged_bytes(content)
    return st.one_of(settings_files(keys), damaged) if file.endswith(".toml") else damaged


def check_commands(commands: Mapping[str, Command], folder: Path) -> Callable[[bytes], None]:
    """Returns a function that runs the command of an input in a folder."""

    def check(content: bytes) -> None:
        name, file, rest = content.split(b"\n", 2)
        arguments, files, _ = commands[name.decode()]
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for other, undamaged in files.items():
            (folder / other).parent.mkdir(parents=True, exist_ok=True)
            (folder / other).write_bytes(undamaged)
        (folder / file.decode()).write_bytes(rest)
        with without_slow_parts():
            code, printed = run(folder, arguments.split())
        assert code in CODES, (code, printed[-500:])
        if code:
            assert printed.rstrip("\n").rpartition("\n")[2].startswith("keras-seq: "), printed

    return check


def run(folder: Path, arguments: list[str]) -> tuple[int, str]:
    """Runs a command in a folder; returns its exit code and standard error."""
    printed = io.StringIO()
    output = SimpleNamespace(buffer=io.BytesIO(), isatty=lambda: False, flush=lambda: None)
    before = os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(output):
            return program.main(arguments), printed.getvalue()
    finally:
        os.chdir(before)


@functools.cache
def _parsers() -> Any:
    return typer.main.get_command(program.app)


@contextlib.contextmanager
def without_slow_parts() -> Iterator[None]:
    """Keeps the parsers of the program, and replaces trainings by one whose result is known."""
    options = dict(Tuning.__init__.__kwdefaults__ or {}, train=KnownTraining(distance))
    with (
        mock.patch.object(Tuning.__init__, "__kwdefaults__", options),
        mock.patch.object(program, "app", _parsers()),
    ):
        yield
