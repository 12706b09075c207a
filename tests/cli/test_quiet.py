"""Importing Keras in a command: no log lines, no optional packages, and no garbage collection."""

import os
import subprocess
import sys

import pytest
from faults.training_process import command, write_corpus

PROGRAM = """
import gc, importlib, sys
from keras_seq.process.optional_packages import OPTIONAL
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
    # JAX itself imports scipy.
    assert set(imported) <= (set() if backend == "tensorflow" else {"jax", "scipy"})
    assert done.stderr == ""


@pytest.mark.process
def test_training_on_jax_does_not_import_tensorflow(tmp_path):
    pytest.importorskip("jax")
    write_corpus(tmp_path)
    code = (
        "import sys; from keras_seq_cli.main import main; main(); print(sys.modules['tensorflow'])"
    )
    line = command(tmp_path, "run", training__max_steps=1, training__validate_every=1)
    done = subprocess.run(
        [sys.executable, "-c", code, *line, "--backend", "jax"], capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "None", done.stderr
