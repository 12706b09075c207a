"""Contestants for decoding: each tool in several configurations."""

from __future__ import annotations

import functools
import importlib.util
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import contestants
from contestants import Contestant, cores
from environments import SkippedError, environment, run
from runs import converted, exported, trained


class Column(NamedTuple):
    """Search options of one table: beam size and batch size."""

    beam: int
    size: int

    @property
    def options(self) -> list[str]:
        return ["--beam", str(self.beam), "--size", str(self.size)]


def contestant(
    name: str, column: Column, program: str, *rest: object, python: str = sys.executable, **env: str
) -> Contestant:
    options = (*column.options, *rest)
    return contestants.contestant(name, f"{program}_decoder", *options, python=python, **env)


def keras_seq(work: pathlib.Path, column: Column) -> Iterator[Contestant]:
    run = trained(work)
    yield contestant("keras-seq", column, "keras_seq", run)
    # Like `keras-seq translate --stream`, which searches one sentence at a time.
    searches = 1 if column.size == 1 else cores()
    yield contestant("keras-seq (1 thread a search)", column, "keras_seq", run, **single(searches))
    if importlib.util.find_spec("jax") is not None:
        # XLA reads the number of threads from `NPROC`.
        name, threads = (
            ("keras-seq on JAX (1 thread)", "1")
            if column.size == 1
            else ("keras-seq on JAX", str(cores()))
        )
        yield contestant(name, column, "keras_seq", run, KERAS_BACKEND="jax", NPROC=threads)


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
        raise SkippedError("not installed: python -m pip install 'keras-seq[ctranslate2]'")
    for arithmetic in ("float32", "int8"):
        name = "CTranslate2" if arithmetic == "float32" else f"CTranslate2 {arithmetic}"
        rest = (converted(work, arithmetic), f"--arithmetic={arithmetic}")
        if column.size > 1:
            both = f"{name} ({cores()} workers, 1 thread each)"
            yield contestant(both, column, "ctranslate2", *rest, f"--workers={cores()}")
        yield contestant(f"{name} (1 thread)", column, "ctranslate2", *rest)


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
    """Single-threaded contestant: one process for single sentences, one per core for batches.

    A second thread has little effect on products as small as these.
    """
    if column.size == 1:
        return one._replace(name=f"{one.name} (1 thread)")
    name = f"{one.name} ({cores()} processes, 1 thread each)"
    return one._replace(name=name, processes=cores())


DECODERS: dict[str, Callable[[pathlib.Path, Column], Iterator[Contestant]]] = {
    "keras-seq": keras_seq,
    "keras-seq-export": keras_seq_export,
    "ctranslate2": ctranslate2,
    "opennmt-tf": opennmt_tf,
    "transformers": functools.partial(on_torch, "transformers"),
    "joeynmt": functools.partial(on_torch, "JoeyNMT"),
}


def single(calls: int = 1) -> dict[str, str]:
    """Environment for TensorFlow: one thread per operation, `calls` operations at a time."""
    return {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": str(calls)}
