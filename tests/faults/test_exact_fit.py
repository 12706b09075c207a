"""A user-written `fit` that is killed with SIGKILL and restarted ends with identical state."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from faults.training_process import QUICK_TO_COMPILE

from keras_seq.storage.checkpoints import CheckpointStore

pytestmark = pytest.mark.process

SCRIPT = Path(__file__).with_name("exact_fit.py")
ROOT = Path(__file__).resolve().parents[2]
STEPS_PER_EPOCH, STEPS = 7, 56
KILLS = 2


def start(folder, backend, *arguments):
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, *map(str, (SCRIPT, folder, *arguments))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ
        | {"KERAS_BACKEND": backend, "PYTHONPATH": str(ROOT), "XLA_FLAGS": QUICK_TO_COMPILE},
    )


def finish(process):
    """Waits until the process succeeds and returns its standard output."""
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


class Straight:
    """An uninterrupted `fit` per backend, which runs in parallel with the killed processes."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = {}

    def begin(self, backend):
        if backend not in self.processes:
            self.processes[backend] = start(self.folder / backend, backend)

    def assert_the_same_end(self, backend, folder):
        process = self.processes[backend]
        if process.returncode is None:
            finish(process)
        straight, killed = end(self.folder / backend), end(folder)
        assert killed.keys() == straight.keys()
        assert [name for name in killed if killed[name] != straight[name]] == []


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    return Straight(tmp_path_factory.mktemp("straight"))


@pytest.mark.parametrize("backend", ["jax"])
@pytest.mark.weekly
def test_fit_killed_at_random_moments_ends_with_identical_state(tmp_path, straight, backend):
    """Compares weights, averages, optimizer, dropout seeds and the state of other callbacks."""
    straight.begin(backend)
    generator = random.Random(backend)
    store = CheckpointStore(tmp_path / "killed" / "checkpoints")
    saved = [0]
    for _ in range(KILLS):
        # A save has about seven file operations; with nine or more, at least one save completes.
        arguments = generator.randrange(9, 28), generator.uniform(0, 0.02)
        process = start(tmp_path / "killed", backend, *arguments)
        assert finish_killed(process).startswith(f"restored {saved[-1]}\n")
        assert saved[-1] < store.latest_step < STEPS
        saved.append(store.latest_step)
    # At least one checkpoint was saved in the middle of an epoch.
    assert any(step % STEPS_PER_EPOCH for step in saved)
    assert finish(start(tmp_path / "killed", backend)).startswith(f"restored {saved[-1]}\n")
    assert not list((tmp_path / "killed").rglob(".tmp-*"))
    straight.assert_the_same_end(backend, tmp_path / "killed")
    # Running the finished script again trains nothing and changes nothing.
    assert finish(start(tmp_path / "killed", backend)) == f"restored {STEPS}\n"
    straight.assert_the_same_end(backend, tmp_path / "killed")


@pytest.mark.weekly
def test_fit_skips_damaged_checkpoints_and_reports_them(tmp_path, straight):
    """A `fit` restores the newest checkpoint without truncated files or flipped bits.

    A `fit` fails while another process holds the lock of the folder.
    """
    straight.begin("tensorflow")
    finish_killed(start(tmp_path / "killed", "tensorflow", 60, 0))
    store = CheckpointStore(tmp_path / "killed" / "checkpoints")
    before, *damaged = store.steps[-5:]
    cut, turned = ("model", "metrics"), ("optimizer", "callbacks")
    for step, part in zip(damaged, [*cut, *turned], strict=True):
        path = store.directory / f"step-{step:08d}" / f"{part}.safetensors"
        content = bytearray(path.read_bytes())
        content[-3] ^= 1
        path.write_bytes(content[:-1] if part in cut else content)
    lock = store.lock("test")
    refused = start(tmp_path / "killed", "tensorflow")
    _, errors = refused.communicate(timeout=300)
    assert refused.returncode == 1
    assert f"{store.directory}: another `fit` with an ExactCheckpoint is at work there: " in errors
    lock.release()
    said = finish(start(tmp_path / "killed", "tensorflow"))
    for step, part in zip(damaged, [*cut, *turned], strict=True):
        found = " has" if part in cut else " has changed since it was written"
        assert f"step-{step:08d}: damaged: {part}.safetensors{found}" in said
    assert f"step-{before:08d}: read instead" in said
    assert f"restored {before}\n" in said
    straight.assert_the_same_end("tensorflow", tmp_path / "killed")
