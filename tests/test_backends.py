"""The same laws hold on JAX: their tests run once more in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = [
    "tests/conformance",
    "tests/layers",
    "tests/models",
    "tests/search",
    "tests/training/test_losses.py",
    "tests/training/test_teaching.py",
    "tests/training/test_weighted_pairs.py",
    # A small training from text files to a translation.
    "tests/training/test_trainer.py",
    # A training that goes on where it was stopped.
    "tests/training/test_resume.py::test_logs_lose_what_was_not_saved_and_have_no_gap[transformer]",
    "tests/test_doctests.py",
]
# What compares the two backends has done so already.
COMPARISON = "tests/conformance/test_law_backends_agree.py"


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="this is that process")
def test_passes_on_jax():
    # JAX compiles on one core, and this process waits: hence two workers.
    options = ["--quiet", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--deselect={COMPARISON}", *TESTS],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, f"{result.stdout[-8000:]}\n{result.stderr[-2000:]}"
