"""Importing Keras in a command: no log lines, no optional packages, and no garbage collection."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import gc, importlib, sys
from keras_seq_cli.optional_imports import OPTIONAL
from keras_seq_cli.quiet import import_quietly

import_quietly("keras_seq.run.models")
import keras

print(keras.backend.backend(), *(name for name in OPTIONAL if name in sys.modules))
for name in OPTIONAL:
    importlib.import_module(name)
assert gc.get_freeze_count() > 100_000 and gc.isenabled()
"""


@pytest.mark.process
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_quiet_import_writes_no_log_lines_and_skips_optional_packages(backend):
    for name in ("PIL", "h5py", "jax", "matplotlib", "scipy"):
        pytest.importorskip(name)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    used, *imported = done.stdout.split()
    assert used == backend
    # JAX itself imports some of the optional packages.
    assert (imported == []) == (backend == "tensorflow")
    assert done.stderr == ""
