"""Who takes part, and what each needs: environments, models, a command for its process."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import machine
import worker

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = {
    "opennmt-tf": ("OpenNMT-tf==2.32.0", "tensorflow==2.12.*", "setuptools<70"),
    "transformers": ("transformers==5.23.0", "torch==2.13.*"),
    # It imports importlib_metadata and does not ask for it.
    "joeynmt": ("joeynmt==2.3.0", "torch==2.13.*", "importlib_metadata"),
}


class SkippedError(Exception):
    """Why a peer takes no part."""


class Column(NamedTuple):
    """What is measured together."""

    beam: int
    size: int

    @property
    def options(self) -> list[str]:
        return ["--beam", str(self.beam), "--size", str(self.size)]


class Contestant(NamedTuple):
    """One way of decoding."""

    name: str
    command: list[str]
    # Read by TensorFlow.
    environment: dict[str, str]
    # Each with a share of the batches.
    processes: int = 1


def cores() -> int:
    return os.cpu_count() or 1


def contestant(
    name: str, column: Column, program: str, *rest: object, python: str = sys.executable, **env: str
) -> Contestant:
    command = [python, str(HERE / f"{program}_decoder.py"), *column.options]
    return Contestant(name, [*command, *map(str, rest)], env)


def keras_seq(work: pathlib.Path, column: Column) -> Iterator[Contestant]:
    run = trained(work)
    yield contestant("keras-seq", column, "keras_seq", run)
    yield contestant("keras-seq (1 thread a search)", column, "keras_seq", run, **single(cores()))


def keras_seq_export(work: pathlib.Path, column: Column) -> Iterator[Contestant]:
    name, program, model = "keras-seq export", "keras_seq_export", exported(work, column.beam)
    yield contestant(name, column, program, model)
    if column.size == 1:
        yield contestant(f"{name} (1 thread)", column, program, model, **single())
    else:
        both = (f"--clients={cores()}",)
        name += f" ({cores()} clients, 1 thread each)"
        yield contestant(name, column, program, model, *both, **single(cores()))


def ctranslate2(work: pathlib.Path, column: Column) -> Iterator[Contestant]:
    if importlib.util.find_spec("ctranslate2") is None:
        raise SkippedError("not installed: pip install 'keras-seq[ctranslate2]'")
    name, program, model = "CTranslate2", "ctranslate2", converted(work)
    if column.size > 1:
        both = f"{name} ({cores()} workers, 1 thread each)"
        yield contestant(both, column, program, model, f"--workers={cores()}")
    yield contestant(f"{name} (1 thread)", column, program, model)


def opennmt_tf(work: pathlib.Path, column: Column) -> Iterator[Contestant]:
    name, program, python = "OpenNMT-tf", "opennmt_tf", environment(work, "opennmt-tf")
    model = work / f"opennmt-tf-export-beam{column.beam}"
    if not model.exists():
        made = contestant("", column, program, model, "--export", python=python)
        run(made.command, "its model cannot be made")
    yield contestant(name, column, program, model, python=python)
    yield alone(contestant(name, column, program, model, python=python, **single()), column)


def on_torch(name: str, work: pathlib.Path, column: Column) -> Iterator[Contestant]:
    program, python = name.lower(), environment(work, name.lower())
    yield contestant(name, column, program, f"--threads={cores()}", python=python)
    yield alone(contestant(name, column, program, "--threads=1", python=python), column)


def alone(one: Contestant, column: Column) -> Contestant:
    """What has one thread: for a sentence at a time as it is, for batches a process for each core.

    A second thread is of little use to products as small as these.
    """
    if column.size == 1:
        return one._replace(name=f"{one.name} (1 thread)")
    name = f"{one.name} ({cores()} processes, 1 thread each)"
    return one._replace(name=name, processes=cores())


PEERS: dict[str, Callable[[pathlib.Path, Column], Iterator[Contestant]]] = {
    "keras-seq": keras_seq,
    "keras-seq-export": keras_seq_export,
    "ctranslate2": ctranslate2,
    "opennmt-tf": opennmt_tf,
    "transformers": functools.partial(on_torch, "transformers"),
    "joeynmt": functools.partial(on_torch, "JoeyNMT"),
}


def single(calls: int = 1) -> dict[str, str]:
    """What TensorFlow reads to compute an operation on one thread, so many at a time."""
    return {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": str(calls)}


@functools.cache
def environment(work: pathlib.Path, name: str) -> str:
    """The peer's own Python, made if need be."""
    folder, requirements = work / name, REQUIREMENTS[name]
    python, note = folder / "bin" / "python", folder / "installed.json"
    if not note.exists() or json.loads(note.read_text()) != list(requirements):
        print(f"{name}: making its environment", file=sys.stderr)
        if not python.exists():
            run([sys.executable, "-m", "venv", str(folder)], "no environment can be made")
        install = [str(python), "-m", "pip", "install", "--quiet", *requirements]
        run(install, "it cannot be installed")
        note.write_text(json.dumps(requirements))
    return str(python)


@functools.cache
def trained(work: pathlib.Path) -> pathlib.Path:
    """A run of one update, which cannot end a sentence before its limit."""
    folder, data = work / "run", machine.multi30k()
    if not folder.exists():
        files = {
            f"--{kind}{side}": data / f"{split}.{language}.gz"
            for kind, split in (("", "train"), ("valid-", "val"))
            for side, language in (("source", "en"), ("target", "de"))
        }
        settings = {
            "training.max_steps": 1,
            "training.validate_every": 1,
            "training.checkpoint_every": 1,
            "search.max_length": worker.STEPS,
            "search.max_length_ratio": 0,
            "search.max_length_extra": worker.STEPS,
        }
        options = ["--preset", "transformer-small"]
        options += [str(part) for pair in files.items() for part in pair]
        options += [f"--set={key}={value}" for key, value in settings.items()]
        ours("train", folder, *options)
    return folder


# Exports are made anew by every run of the program: they are what is measured.


@functools.cache
def exported(work: pathlib.Path, beam: int) -> pathlib.Path:
    """The newest export of the run, as a SavedModel."""
    base = work / f"keras-seq-export-beam{beam}"
    shutil.rmtree(base, ignore_errors=True)
    ours("export", trained(work), base, f"--beam={beam}")
    return base / "1"


@functools.cache
def converted(work: pathlib.Path) -> pathlib.Path:
    """The same weights for CTranslate2."""
    directory = work / "ctranslate2-export"
    shutil.rmtree(directory, ignore_errors=True)
    # Weights of one update: two translations can be as good as each other.
    ours("export", trained(work), directory, "--format=ctranslate2", "--verify=0")
    return directory


def ours(*arguments: object) -> None:
    command = [sys.executable, "-m", "keras_seq", *map(str, arguments)]
    run(command, f"keras-seq {arguments[0]} failed")


def run(command: list[str], failure: str) -> None:
    """Runs a command whose words matter only if it fails."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    if done.returncode:
        words = done.stdout.strip().splitlines()
        raise SkippedError(f"{failure}: {words[-1] if words else f'exit {done.returncode}'}")
