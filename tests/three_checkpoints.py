"""Runs with three checkpoints of different weights: the best, a middle one, and the latest."""

import shutil
from pathlib import Path

import numpy as np
import safetensors.numpy

from keras_seq.run import Run

BEST, MIDDLE, LATEST = 10, 20, 30
# The step that each value of `--which` selects.
MEANT = {"best": BEST, str(MIDDLE): MIDDLE, "latest": LATEST}


def with_three_checkpoints(run: Path, copy: Path) -> Path:
    """Copies a run and replaces its checkpoints by three with random weights."""
    shutil.copytree(run, copy)
    last = Run.open(run).checkpoints.latest_step
    shapes = stored_weights(run, last)
    shutil.rmtree(copy / "checkpoints")
    made = Run.open(copy)
    for step in (BEST, MIDDLE, LATEST):
        generator = np.random.default_rng(step)
        weights = {
            name: generator.normal(size=array.shape).astype(array.dtype)
            for name, array in shapes.items()
        }
        made.save_checkpoint(step, {"weights": weights}, {})
    made.mark_best(BEST)
    return copy


def with_one_checkpoint(run: Path, step: int, copy: Path) -> Path:
    """Copies a run with only the checkpoint of one step, so that no other can be loaded."""
    shutil.copytree(run, copy)
    for path in (copy / "checkpoints").iterdir():
        if path.name != f"step-{step:08}":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return copy


def stored_weights(run: Path, step: int) -> dict[str, np.ndarray]:
    """Reads the weights of a checkpoint directly with the safetensors library."""
    path = run / "checkpoints" / f"step-{step:08}" / "weights.safetensors"
    return safetensors.numpy.load_file(path)
