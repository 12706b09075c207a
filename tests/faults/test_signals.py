"""SIGTERM and Ctrl-C, wherever a training is: saved, said, under five seconds."""

import signal
import time

import pytest
from faults.training_process import Training, command, last_arrays, write_corpus

from keras_seq.run import Run

# Long enough to be met, and never over by itself.
ENDLESS = {"training__validate_every": 10**6, "training__checkpoint_every": 10**6}
# Says when something is begun, then waits in C code, as a backend that compiles or decodes does;
# the interpreter cannot handle a signal until it is over.
DEAF = """
import ctypes
def deaf(what):
    print("begin", what, file=sys.stderr, flush=True)
    wait = ctypes.CDLL(None).sleep
    left = 30
    while left > 0:
        left = wait(left)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")
    write_corpus(folder)
    return folder


def begun(folder, name, code="", **settings):
    return Training(command(folder, name, **(ENDLESS | settings)), code)


SLOW_STEPS = """
import keras_seq.training.loop as loop, time
batches = loop.TrainingLoop._batches
def slow(self):
    for batch in batches(self):
        print("batch", file=sys.stderr, flush=True)
        time.sleep(0.05)
        yield batch
loop.TrainingLoop._batches = slow
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["term", "int"]
)
def test_in_training(folder, number, code):
    """No checkpoint was due: that of the running update is made for the signal."""
    training = begun(folder, f"training-{number}", SLOW_STEPS)
    for _ in range(12):
        training.wait_for("batch")
    ended, said, seconds = training.signalled(number)
    assert ended == code, said
    assert seconds < 5
    assert "Traceback" not in said
    run = Run.open(folder / f"training-{number}")
    assert run.latest_step >= 5
    assert said.endswith(
        f"stopped by a signal; step {run.latest_step} is saved: the same command goes on from there"
    )
    assert last_arrays(run.path)


def test_in_the_first_compilation(folder):
    code = (
        DEAF
        + """
import keras
keras.Model.fit = lambda *_, **__: deaf("compilation")
"""
    )
    training = begun(folder, "compile", code)
    training.wait_for("begin compilation")
    time.sleep(0.2)
    ended, said, seconds = training.signalled(signal.SIGTERM)
    assert (ended, seconds < 5) == (143, True), (seconds, said)
    assert Run.open(folder / "compile").read_preparation() is not None


def test_in_decoding(folder):
    """Nothing is lost: what validation looks at was saved before."""
    code = (
        DEAF
        + """
import keras_seq.translator as translator
translator.Translator.__call__ = lambda *_: deaf("decoding")
"""
    )
    training = begun(folder, "decoding", code, training__validate_every=3)
    training.wait_for("begin decoding")
    ended, said, seconds = training.signalled(signal.SIGTERM)
    assert (ended, seconds < 5) == (143, True), (seconds, said)
    assert Run.open(folder / "decoding").saved_steps == [3]


def test_in_a_save(folder):
    """The save is brought to its end."""
    code = """
import keras_seq.checkpoints as checkpoints, time
write = checkpoints.write_tensors
def slow(path, arrays):
    print("begin save", file=sys.stderr, flush=True)
    time.sleep(1)
    return write(path, arrays)
checkpoints.write_tensors = slow
"""
    training = begun(folder, "save", code, training__checkpoint_every=2)
    training.wait_for("begin save")
    ended, said, seconds = training.signalled(signal.SIGTERM)
    assert (ended, seconds < 5) == (143, True), (seconds, said)
    run = Run.open(folder / "save")
    assert run.saved_steps == [2]
    assert not list(run.path.rglob(".tmp-*"))
    assert "step 2 is saved" in said


def test_twice_ends_at_once_with_the_earlier_checkpoint(folder):
    code = (
        DEAF
        + """
import keras_seq.checkpoints as checkpoints
write = checkpoints.write_tensors
def stuck(path, arrays):
    if "step-00000004" in str(path):
        deaf("save")
    return write(path, arrays)
checkpoints.write_tensors = stuck
"""
    )
    training = begun(folder, "twice", code, training__checkpoint_every=2)
    training.wait_for("begin save")
    training.process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    # Once is not enough here: two updates are not yet saved.
    assert training.process.poll() is None
    ended, said, seconds = training.signalled(signal.SIGINT)
    assert (ended, seconds < 2) == (130, True), (seconds, said)
    assert Run.open(folder / "twice").saved_steps == [2]
    # What the killed save left is cleaned, and the training goes on.
    again = Training(command(folder, "twice", **(ENDLESS | {"training__max_steps": 5})))
    ended, said = again.end()
    assert ended == 0, said
    assert "going on after step 2" in said
    assert not list((folder / "twice").rglob(".tmp-*"))


def test_while_the_text_is_prepared(folder):
    """Nothing is left behind that a later command would trip over."""
    code = """
import keras_seq.preparation as preparation, time
train = preparation.Tokenizer.train
def slow(*arguments, **options):
    print("begin vocabulary", file=sys.stderr, flush=True)
    time.sleep(30)
preparation.Tokenizer.train = slow
"""
    training = begun(folder, "text", code)
    training.wait_for("begin vocabulary")
    ended, said, seconds = training.signalled(signal.SIGTERM)
    assert (ended, seconds < 5) == (143, True), (seconds, said)
    assert not (folder / "text").exists()
