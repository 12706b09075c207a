"""The keras-seq run that provides the tokens for all tools, and its exports."""

from __future__ import annotations

import functools
import pathlib
import shutil

import machine
import worker
from environments import ours


@functools.cache
def trained(work: pathlib.Path) -> pathlib.Path:
    """Run of one update, so untrained that every translation reaches the length limit."""
    folder = work / "run"
    if not folder.exists():
        data = machine.multi30k()
        files = {
            f"--{kind}{side}": data / f"{split}.{language}.gz"
            for kind, split in (("", "train"), ("valid-", "val"))
            for side, language in (("source", "en"), ("target", "de"))
        }
        options = ["--preset", "transformer-small"]
        train_once(folder, *options, *(part for pair in files.items() for part in pair))
    return folder


def test_lines(work: pathlib.Path) -> pathlib.Path:
    """Path of the text to translate."""
    own = work / "test.source"
    return own if own.exists() else machine.multi30k() / "test_2016_flickr.en.gz"


def train_once(folder: pathlib.Path, *options: object) -> None:
    """Trains a run for one update."""
    settings = {
        "training.max_steps": 1,
        "training.validate_every": 1,
        "training.checkpoint_every": 1,
        "search.max_length": worker.STEPS,
        "search.max_length_ratio": 0,
        "search.max_length_extra": worker.STEPS,
    }
    ours("train", folder, *options, *(f"--set={key}={value}" for key, value in settings.items()))


# Every run of the benchmark exports again, because the exports are what it measures.


@functools.cache
def exported(work: pathlib.Path, beam: int) -> pathlib.Path:
    """Exports the run as a SavedModel and returns its directory."""
    return export_to(work / f"keras-seq-export-beam{beam}", f"--beam-size={beam}") / "1"


@functools.cache
def converted(work: pathlib.Path, quantize: str) -> pathlib.Path:
    """Exports the run for CTranslate2 and returns the directory."""
    options = ("--format=ctranslate2", f"--quantize={quantize}", "--verify=0")
    return export_to(work / f"ctranslate2-export-{quantize}", *options)


@functools.cache
def exported_to_onnx(work: pathlib.Path, beam: int) -> pathlib.Path:
    """Exports the run to ONNX and returns the directory."""
    options = ("--format=onnx", f"--beam-size={beam}", "--verify=0")
    return export_to(work / f"onnx-export-beam{beam}", *options)


def export_to(directory: pathlib.Path, *options: str) -> pathlib.Path:
    """Exports the run beside it to a new directory, and returns the directory.

    CTranslate2 and ONNX take `--verify=0`, because after one update two translations can have equal
    scores.
    """
    shutil.rmtree(directory, ignore_errors=True)
    ours("export", trained(directory.parent), directory, *options)
    return directory
