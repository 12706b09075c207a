"""A signal in a library: what it was about is done, and then our code is left."""

import queue
import signal
import sys
import threading

import pytest

from keras_seq.interruption import raise_in_our_code


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
def test_a_library_ends_what_it_does(library):
    done = []
    ours = function("keras_seq.layers", CALLS, inner=function(library, SIGNALLED))
    with pytest.raises(End):
        ours(done)
    assert done == ["library"]
    assert sys.gettrace() is None


def test_what_a_library_calls_of_others_is_the_librarys():
    done = []
    other = function("importlib._bootstrap", SIGNALLED)
    library = function("tensorflow.python", CALLS, inner=other)
    with pytest.raises(End):
        function("keras_seq.layers", CALLS, inner=library)(done)
    assert done == ["library", "tensorflow.python"]


def test_our_code_that_a_library_calls_is_left_at_its_beginning():
    done = []
    called = function("keras_seq.layers", "def run(done): done.append('ours')")
    source = SIGNALLED + "    inner(done)\n    done.append('after')\n"
    library = function("keras.src", source, inner=called)
    with pytest.raises(End):
        function("keras_seq.training", CALLS, inner=library)(done)
    assert done == ["library"]


def test_our_code_is_left_at_its_end_if_the_library_was_called_last():
    source = "def run(done): return inner(done)"
    done = []
    with pytest.raises(End):
        function("keras_seq", source, inner=function("keras", SIGNALLED))(done)
    assert done == ["library"]


@pytest.mark.parametrize("module", ["keras_seq.files", "keras_seq_cli.main", "__main__"])
def test_elsewhere_it_raises_where_the_signal_was(module):
    done = []
    with pytest.raises(End):
        function(module, SIGNALLED)(done)
    assert done == []


def test_waiting_is_left():
    """Nothing would ever call our code again."""
    timer = threading.Timer(0.2, signal.pthread_kill, (threading.get_ident(), signal.SIGTERM))
    timer.start()
    wait = function("keras_seq.data", "def run(waiting): waiting.get(timeout=60)")
    with pytest.raises(End):
        wait(queue.Queue())
    timer.join()


def test_who_thinks_better_of_it_is_asked_once():
    asked = []
    signal.signal(
        signal.SIGTERM, lambda _, frame: raise_in_our_code(frame, lambda: asked.append("asked"))
    )
    done = []
    function("keras_seq", CALLS, inner=function("keras", SIGNALLED))(done)
    assert (done, asked) == (["library", "keras_seq"], ["asked"])
    assert sys.gettrace() is None
