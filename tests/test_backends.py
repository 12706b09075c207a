"""The same laws hold on JAX: their tests run once more in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="this is that process")
@pytest.mark.parametrize(
    "tests",
    ["tests/conformance", "tests/layers", "tests/models", "tests/search", "tests/test_doctests.py"],
)
def test_passes_on_jax(tests):
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "-n", "0", tests],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, f"{result.stdout[-4000:]}\n{result.stderr[-2000:]}"
