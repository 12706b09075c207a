"""Importing Keras in a command: no log lines, and no garbage collection of what it imports."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import gc
from keras_seq_cli.quiet import import_quietly

import_quietly("keras_seq.run.models")
import keras

print(keras.backend.backend())
assert gc.get_freeze_count() > 100_000 and gc.isenabled()
"""


@pytest.mark.process
@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_quiet_import_writes_no_log_lines_and_freezes_objects(backend):
    pytest.importorskip(backend)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [backend]
    assert done.stderr == ""
