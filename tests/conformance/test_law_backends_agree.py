"""All backends give the same numbers from the same weights."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from conformance.harness import assert_same, outputs_of
from conformance.table import FIRST, ROWS
from faults.training_process import QUICK_TO_COMPILE

pytestmark = pytest.mark.process

OTHER = {"tensorflow": "jax", "jax": "tensorflow", "torch": "tensorflow"}


@pytest.fixture(scope="session")
def other_outputs(made_once, request):
    items = [item for item in request.session.items if item.path == Path(__file__)]
    names = [item.callspec.params["row"].name for item in items]
    made = made_once("outputs.npz", lambda path: _write_other_outputs(path, names))
    with np.load(made) as arrays:
        return dict(arrays)


def _write_other_outputs(path, names):
    environment = {
        **os.environ,
        "KERAS_BACKEND": OTHER[keras.backend.backend()],
        "PYTHONPATH": str(Path(__file__).parents[1]),
        # Compilation takes three quarters of the time, and each program runs once.
        "XLA_FLAGS": QUICK_TO_COMPILE,
    }
    command = [sys.executable, "-m", "conformance.outputs", str(path), *names]
    subprocess.run(command, env=environment, check=True)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(
            row,
            id=row.name,
            marks=[pytest.mark.torch, *[pytest.mark.weekly] * (row.name not in FIRST.values())],
        )
        for row in ROWS
    ],
)
def test_outputs_of_two_backends_agree(row, other_outputs):
    expected = [other_outputs[f"{row.name} {index}"] for index in range(len(row.outputs))]
    assert_same(row, outputs_of(row), expected)
