"""What a command imports with Keras, and what it lets others import afterwards."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import gc, importlib, sys
from keras_seq_cli.quiet import import_quietly

import_quietly("keras_seq.run.models")
import keras

needless = ("PIL", "h5py", "jax", "matplotlib", "scipy")
print(keras.backend.backend(), *(name for name in needless if name in sys.modules))
for name in needless:
    importlib.import_module(name)
# What the import left is not looked through again; what comes after is.
assert gc.get_freeze_count() > 100_000 and gc.isenabled()
"""


@pytest.mark.process
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_quiet_import_skips_unneeded_packages_until_requested(backend):
    for name in ("PIL", "h5py", "jax", "matplotlib", "scipy"):
        pytest.importorskip(name)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found, *imported = done.stdout.split()
    assert found == backend
    # JAX needs some of them itself.
    assert (imported == []) == (backend == "tensorflow")
    assert done.stderr == ""
