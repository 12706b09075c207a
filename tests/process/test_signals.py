"""Signals in library code: the action waits for the next safe point."""

import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from keras_seq.process.signals import forget_deferred, raise_outside_libraries, safe_point

ROOT = Path(__file__).resolve().parents[2]


class End(BaseException):
    """Derives from BaseException, so that library code does not catch it."""


@pytest.fixture(autouse=True)
def handler():
    def handle(number, frame):
        raise_outside_libraries(frame, end)

    def end():
        raise End

    before = signal.signal(signal.SIGTERM, handle)
    yield
    signal.signal(signal.SIGTERM, before)
    forget_deferred()


def function(module, source, **names):
    """Returns the function `run` of a source text, as if it were defined in `module`."""
    namespace = {"__name__": module, "signal": signal, "safe_point": safe_point} | names
    exec(source, namespace)
    return namespace["run"]


SIGNALLED = """
def run(done):
    signal.raise_signal(signal.SIGTERM)
    done.append("library")
"""
CALLS = """
def run(done):
    inner(done)
    done.append(__name__)
    safe_point()
    done.append("after the safe point")
"""


@pytest.mark.parametrize("library", ["tensorflow.python.eager", "keras.src", "jax", "jax._src"])
def test_signal_in_a_library_waits_until_the_library_returns(library):
    done = []
    ours = function("keras_seq.layers", CALLS, inner=function(library, SIGNALLED))
    with pytest.raises(End):
        ours(done)
    assert done == ["library", "keras_seq.layers"]


def test_signal_in_code_called_by_a_library_waits_for_the_library():
    done = []
    other = function("importlib._bootstrap", SIGNALLED)
    library = function("tensorflow.python", "def run(done): inner(done)", inner=other)
    with pytest.raises(End):
        function("keras_seq.layers", CALLS, inner=library)(done)
    assert done == ["library", "keras_seq.layers"]


@pytest.mark.parametrize("module", ["keras_seq.storage.atomic", "keras_seq_cli.main", "__main__"])
def test_signal_outside_libraries_raises_immediately(module):
    done = []
    with pytest.raises(End):
        function(module, SIGNALLED)(done)
    assert done == []


def test_signal_interrupts_a_blocking_wait():
    timer = threading.Timer(0.2, signal.pthread_kill, (threading.get_ident(), signal.SIGTERM))
    timer.start()
    wait = function("keras_seq.data", "def run(waiting): waiting.get(timeout=60)")
    with pytest.raises(End):
        wait(queue.Queue())
    timer.join()


def test_interruption_callback_that_does_not_raise_is_called_once():
    calls = []
    signal.signal(
        signal.SIGTERM,
        lambda _, frame: raise_outside_libraries(frame, lambda: calls.append("called")),
    )
    done = []
    function("keras_seq", CALLS, inner=function("keras", SIGNALLED))(done)
    safe_point()
    assert (done, calls) == (["library", "keras_seq", "after the safe point"], ["called"])


def test_safe_point_in_another_thread_does_nothing():
    done = []
    function("keras", SIGNALLED)(done)
    thread = threading.Thread(target=safe_point)
    thread.start()
    thread.join()
    with pytest.raises(End):
        safe_point()


def test_compiled_functions_are_safe_points():
    import numpy as np

    from keras_seq import backend

    add_one = backend.compiled(lambda ids: ids + 1, [], ranks=[1])
    function("keras", SIGNALLED)([])
    with pytest.raises(End):
        add_one(np.arange(3))
    assert len(add_one(np.arange(3))) == 3


STUCK = """
import signal, time
from keras_seq.process.signals import raise_outside_libraries
def end():
    raise SystemExit(1)
signal.signal(signal.SIGTERM, lambda _, frame: raise_outside_libraries(frame, end, exit_code=143))
print("output before the signal")
exec("import signal\\nsignal.raise_signal(15)\\ntime.sleep(60)",
     {"__name__": "tensorflow.python", "time": time})
"""


@pytest.mark.process
def test_process_without_a_safe_point_ends_with_the_exit_code():
    process = subprocess.run(
        [sys.executable, "-c", STUCK], cwd=ROOT, capture_output=True, text=True, timeout=30
    )
    assert (process.returncode, process.stdout) == (143, "output before the signal\n")
    assert process.stderr == ""
