"""Distribution of CPU cores to searches."""

import os
import subprocess
import sys

import pytest

from keras_seq.operating_system import usable_cores
from keras_seq.process.threads import (
    configure_threads,
    configure_training_threads,
    num_search_threads,
    num_training_threads,
)

NAMES = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
THREADS_OF_XLA = """
import os, sys
from keras_seq.process.threads import configure_threads
configure_threads(int(sys.argv[1]))
import jax
jax.jit(lambda x: x @ x)(jax.numpy.ones((512, 512))).block_until_ready()
names = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
# Newer releases also have threads that compile and threads that start programs.
print(sum("XLAEigen" in name for name in names))
"""


def without_threads(monkeypatch):
    for name in (*NAMES, "NPROC"):
        # Set first, so that monkeypatch restores the variable after the test.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def test_share_cores_gives_each_search_a_thread_before_tensorflow_loads(monkeypatch):
    without_threads(monkeypatch)
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    configure_threads(3)
    assert [os.environ[name] for name in NAMES] == ["1", "3"]
    assert num_search_threads() == 3
    configure_threads(5)
    assert num_search_threads() == 3


def test_share_cores_changes_nothing_after_tensorflow_is_imported(monkeypatch):
    without_threads(monkeypatch)
    monkeypatch.setitem(sys.modules, "tensorflow", os)
    configure_threads(3)
    assert not set(NAMES) & set(os.environ)
    assert num_search_threads() == usable_cores() <= os.cpu_count()


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted on Linux")
@pytest.mark.parametrize(
    ("searches", "told", "threads"),
    [("1", {}, 1), ("1", {"NPROC": "3"}, 3), ("3", {"NPROC": "2"}, 2)],
)
def test_jax_uses_one_thread_for_one_search_unless_nproc_is_set(searches, told, threads):
    """Counts the XLA threads of a separate process."""
    if pytest.importorskip("jax").__version_info__ < (0, 8):
        pytest.skip("this release does not name its threads")
    others = {name: value for name, value in os.environ.items() if name not in (*NAMES, "NPROC")}
    command = [sys.executable, "-c", THREADS_OF_XLA, searches]
    process = subprocess.run(
        command, env={**others, **told}, capture_output=True, text=True, check=True
    )
    assert int(process.stdout) == threads


@pytest.mark.parametrize(("cores", "parts"), [(1, 1), (2, 2), (8, 8), (9, 1)])
def test_batch_is_split_into_a_part_per_core_up_to_8_cores(monkeypatch, cores, parts):
    without_threads(monkeypatch)
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    monkeypatch.setattr("keras_seq.process.threads.usable_cores", lambda: cores)
    configure_training_threads()
    assert num_training_threads() == parts


def test_batch_is_not_split_when_threads_share_operations(monkeypatch):
    without_threads(monkeypatch)
    assert num_training_threads() == 1
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "2")
    monkeypatch.setenv("TF_NUM_INTEROP_THREADS", "2")
    assert num_training_threads() == 1


SHARED = """
import os
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import tensorflow as tf
from keras_seq.process.threads import num_training_threads, share_training_cores
{}
share_training_cores()
keras.ops.ones(2) + 1
threads = tf.config.threading
print(threads.get_intra_op_parallelism_threads(), num_training_threads())
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("before", "expected"),
    [("", "1 {cores}"), ("keras.ops.ones(2)", "0 1")],
    ids=["before TensorFlow computes", "afterwards"],
)
def test_cores_are_shared_after_tensorflow_is_imported(before, expected):
    names = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "NPROC")
    environment = {key: value for key, value in os.environ.items() if key not in names}
    command = [sys.executable, "-c", SHARED.format(before)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    cores = usable_cores()
    if cores > 8:
        pytest.skip("TensorFlow splits operations on machines with many cores")
    assert done.stdout.strip() == expected.format(cores=cores)
