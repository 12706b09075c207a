"""TensorFlow and JAX give the same numbers from the same weights."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from conformance.harness import assert_same, outputs_of
from conformance.table import ROWS

pytestmark = pytest.mark.process

OTHER = {"tensorflow": "jax", "jax": "tensorflow"}


@pytest.fixture(scope="session")
def other_outputs(tmp_path_factory):
    path = tmp_path_factory.mktemp("outputs") / "outputs.npz"
    environment = {
        **os.environ,
        "KERAS_BACKEND": OTHER[keras.backend.backend()],
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    subprocess.run(
        [sys.executable, "-m", "conformance.outputs", str(path)], env=environment, check=True
    )
    with np.load(path) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_tensorflow_and_jax_outputs_agree(row, other_outputs):
    expected = [other_outputs[f"{row.name} {index}"] for index in range(len(row.outputs))]
    assert_same(row, outputs_of(row), expected)
