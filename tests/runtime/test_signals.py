"""A signal in a library: what it was about is done, and then our code is left."""

import queue
import signal
import sys
import threading

import pytest

from keras_seq.runtime.signals import raise_in_our_code


class End(BaseException):
    """As SystemExit and KeyboardInterrupt are, nothing that a library handles."""


@pytest.fixture(autouse=True)
def handler():
    def handle(number, frame):
        raise_in_our_code(frame, end)

    def end():
        raise End

    traced = sys.gettrace()
    before = signal.signal(signal.SIGTERM, handle)
    yield
    signal.signal(signal.SIGTERM, before)
    sys.settrace(traced)


def function(module, source, **names):
    """A function `run` of `source`, as if `module` had defined it."""
    found = {"__name__": module, "signal": signal} | names
    exec(source, found)
    return found["run"]


SIGNALLED = """
def run(done):
    signal.raise_signal(signal.SIGTERM)
    done.append("library")
"""
CALLS = """
def run(done):
    inner(done)
    done.append(__name__)
"""


@pytest.mark.parametrize("library", ["tensorflow.python.eager", "keras.src", "jax", "jax._src"])
def test_signal_in_a_library_waits_until_the_library_returns(library):
    done = []
    ours = function("keras_seq.layers", CALLS, inner=function(library, SIGNALLED))
    with pytest.raises(End):
        ours(done)
    assert done == ["library"]
    assert sys.gettrace() is None


def test_signal_in_code_called_by_a_library_waits_for_the_library():
    done = []
    other = function("importlib._bootstrap", SIGNALLED)
    library = function("tensorflow.python", CALLS, inner=other)
    with pytest.raises(End):
        function("keras_seq.layers", CALLS, inner=library)(done)
    assert done == ["library", "tensorflow.python"]


def test_own_code_called_by_a_library_is_interrupted_on_entry():
    done = []
    called = function("keras_seq.layers", "def run(done): done.append('ours')")
    source = SIGNALLED + "    inner(done)\n    done.append('after')\n"
    library = function("keras.src", source, inner=called)
    with pytest.raises(End):
        function("keras_seq.training", CALLS, inner=library)(done)
    assert done == ["library"]


def test_own_code_is_interrupted_on_return_after_a_final_library_call():
    source = "def run(done): return inner(done)"
    done = []
    with pytest.raises(End):
        function("keras_seq", source, inner=function("keras", SIGNALLED))(done)
    assert done == ["library"]


@pytest.mark.parametrize("module", ["keras_seq.storage.atomic", "keras_seq_cli.main", "__main__"])
def test_signal_outside_libraries_raises_immediately(module):
    done = []
    with pytest.raises(End):
        function(module, SIGNALLED)(done)
    assert done == []


def test_signal_interrupts_a_blocking_wait():
    """Nothing would ever call our code again."""
    timer = threading.Timer(0.2, signal.pthread_kill, (threading.get_ident(), signal.SIGTERM))
    timer.start()
    wait = function("keras_seq.data", "def run(waiting): waiting.get(timeout=60)")
    with pytest.raises(End):
        wait(queue.Queue())
    timer.join()


def test_interruption_callback_that_does_not_raise_is_called_once():
    asked = []
    signal.signal(
        signal.SIGTERM, lambda _, frame: raise_in_our_code(frame, lambda: asked.append("asked"))
    )
    done = []
    function("keras_seq", CALLS, inner=function("keras", SIGNALLED))(done)
    assert (done, asked) == (["library", "keras_seq"], ["asked"])
    assert sys.gettrace() is None
