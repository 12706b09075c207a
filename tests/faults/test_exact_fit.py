"""kill -9 at any moment of a `fit` of somebody's own, on both backends: nothing is changed."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_seq.checkpoints import CheckpointStore

SCRIPT = Path(__file__).with_name("exact_fit.py")
ROOT = Path(__file__).resolve().parents[2]
STEPS_PER_EPOCH, STEPS = 7, 56
KILLS = 3


def start(folder, backend, *arguments):
    folder.mkdir(exist_ok=True)
    words = [*map(str, (SCRIPT, folder, *arguments))]
    return subprocess.Popen(
        [sys.executable, "-W", "error::UserWarning", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"KERAS_BACKEND": backend, "PYTHONPATH": str(ROOT)},
    )


def finish(process):
    """What it said last, after it ended well."""
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return said


def finish_killed(process):
    said, errors = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL, errors
    return said


def end(folder):
    with np.load(folder / "end.npz") as file:
        return {name: (file[name].shape, file[name].tobytes()) for name in file}


def assert_the_same_end(folder):
    straight, killed = end(folder / "straight"), end(folder / "killed")
    assert killed.keys() == straight.keys()
    assert [name for name in killed if killed[name] != straight[name]] == []


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_kills_at_any_moment_change_nothing(tmp_path, backend):
    """Weights, optimizer, seeds of the dropout, and what other callbacks have counted."""
    straight = start(tmp_path / "straight", backend)
    generator = random.Random(backend)
    store = CheckpointStore(tmp_path / "killed" / "checkpoints")
    saved = [0]
    for _ in range(KILLS):
        # A save has seven parts or so; at least one of them shall come to its end.
        arguments = generator.randrange(9, 28), generator.uniform(0, 0.02)
        process = start(tmp_path / "killed", backend, *arguments)
        assert finish_killed(process).startswith(f"restored {saved[-1]}\n")
        assert saved[-1] < store.latest_step < STEPS
        saved.append(store.latest_step)
    # Some of them within an epoch.
    assert any(step % STEPS_PER_EPOCH for step in saved)
    assert finish(start(tmp_path / "killed", backend)).startswith(f"restored {saved[-1]}\n")
    finish(straight)
    assert not list((tmp_path / "killed").rglob(".tmp-*"))
    assert_the_same_end(tmp_path)
    # What is over is not done again, and stays what it is.
    assert finish(start(tmp_path / "killed", backend)) == f"restored {STEPS}\n"
    assert_the_same_end(tmp_path)


def test_damaged_checkpoints_are_passed_over(tmp_path):
    """A file cut short and a bit turned over: the one before them is taken, and it is said."""
    straight = start(tmp_path / "straight", "tensorflow")
    finish_killed(start(tmp_path / "killed", "tensorflow", 60, 0))
    store = CheckpointStore(tmp_path / "killed" / "checkpoints")
    *_, before, middle, last = store.steps
    path = store.directory / f"step-{last:08d}" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    path = store.directory / f"step-{middle:08d}" / "optimizer.safetensors"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    said = finish(start(tmp_path / "killed", "tensorflow"))
    assert f"step-{last:08d}: damaged: model.safetensors has" in said
    assert f"step-{middle:08d}: damaged: optimizer.safetensors is not what was written" in said
    assert f"step-{before:08d}: taken in its place" in said
    assert f"restored {before}\n" in said
    finish(straight)
    assert_the_same_end(tmp_path)
