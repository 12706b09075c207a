"""SIGTERM or Ctrl-C at any point of a training: it saves, reports and exits within five seconds."""

import signal
import time

import pytest
from faults.training_process import (
    HOLD_SAVES,
    QUICK_TO_COMPILE,
    SAY_UPDATES,
    Training,
    command,
    last_arrays,
    on,
    write_corpus,
)
from weekly import weekly

from keras_seq.run import Run

pytestmark = pytest.mark.process

# Trains without validations or periodic checkpoints until a signal arrives.
ENDLESS = {"training__validate_every": 10**6, "training__checkpoint_every": 10**6}
# Prints a line, then blocks in C code that no signal interrupts, like a backend that compiles or
# decodes. Python cannot handle a signal until the C code returns.
DEAF = """
import ctypes
def deaf(*_, **__):
    libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(256)
    libc.pthread_mutex_init(mutex, None)
    libc.pthread_mutex_lock(mutex)
    print("begin", file=sys.stderr, flush=True)
    # Held already, by this very thread: it waits for ever.
    libc.pthread_mutex_lock(mutex)
"""
# Wraps the function that makes the updates: Keras' `fit`, or the custom loop that TensorFlow uses
# if cores or devices share a batch.
INSTEAD_OF_FIT = """
import keras
def instead_of_fit(wrap):
    keras.Model.fit = wrap(keras.Model.fit)
    if keras.backend.backend() == "tensorflow":
        from keras_seq.cluster.tensorflow_loop import TensorFlowLoop
        TensorFlowLoop.fit = wrap(TensorFlowLoop.fit)
"""
# Prints a line, then calls the function.
SAYS = """
def says(call):
    def saying(*arguments, **options):
        print("begin", file=sys.stderr, flush=True)
        return call(*arguments, **options)
    return saying
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")
    write_corpus(folder)
    return folder


@pytest.fixture(autouse=True)
def compile_quickly(monkeypatch):
    """Skips XLA optimizations, because they double the time of these trainings on JAX."""
    monkeypatch.setenv("XLA_FLAGS", QUICK_TO_COMPILE)


def begun(folder, name, code="", **settings):
    return Training(command(folder, name, **(ENDLESS | settings)), code)


@pytest.mark.parametrize(
    ("number", "code", "backend"),
    [(signal.SIGTERM, 143, "tensorflow"), (signal.SIGINT, 130, "jax")],
    ids=["term-tensorflow", "int-jax"],
)
def test_signal_during_training_saves_a_checkpoint_and_exits(folder, number, code, backend):
    """No periodic checkpoint is due, so the signal alone causes the save."""
    name = f"training-{number}-{backend}"
    training = begun(folder, name, on(backend) + SAY_UPDATES)
    for _ in range(5):
        training.wait_for("update")
    ended, said, seconds = training.signalled(number)
    assert ended == code, said
    assert seconds < 5
    assert "Traceback" not in said
    run = Run.open(folder / name)
    assert run.checkpoints.latest_step >= 5
    assert said.endswith(
        f"stopped by a signal; step {run.checkpoints.latest_step:,} is saved: "
        "the same command resumes from there"
    )
    assert last_arrays(run.path)


@pytest.mark.parametrize(("seconds", "backend"), [(0.6, "tensorflow"), *weekly((0.3, "jax"))])
def test_sigterm_during_the_first_compilation_exits_with_143(folder, backend, seconds):
    """The process exits cleanly, whatever the backend does when the signal arrives."""
    name = f"compile-{backend}-{seconds}"
    code = f"{on(backend)}{SAYS}{INSTEAD_OF_FIT}instead_of_fit(says)"
    training = begun(folder, name, code)
    training.wait_for("begin")
    time.sleep(seconds)
    ended, said, seconds = training.signalled(signal.SIGTERM)
    assert (ended, seconds < 5) == (143, True), (seconds, said)
    assert "Traceback" not in said and "error" not in said.split("begin")[-1]
    run = Run.open(folder / name)
    assert run.read_preparation() is not None
    # On a fast machine, compilation is over and the process has trained and saved a checkpoint.
    assert run.checkpoints.latest_step is None or last_arrays(run.path)


def test_sigterm_during_an_uninterruptible_compilation_exits_with_143(folder):
    code = f"{DEAF}{INSTEAD_OF_FIT}instead_of_fit(lambda _: deaf)"
    training = begun(folder, "deaf", code)
    training.wait_for("begin")
    ended, said, seconds = training.signalled(signal.SIGTERM)
    assert (ended, seconds < 5) == (143, True), (seconds, said)
    assert Run.open(folder / "deaf").checkpoints.steps == []


def check_validation(folder, name, training):
    training.wait_for("begin")
    ended, said, seconds = training.signalled(signal.SIGTERM)
    assert (ended, seconds < 5) == (143, True), (seconds, said)
    assert "Traceback" not in said
    run = Run.open(folder / name)
    assert run.checkpoints.steps == [3]
    assert last_arrays(run.path)


EVALUATION = """
import keras_seq.training.evaluation as evaluation
make = evaluation.make_evaluation
evaluation.make_evaluation = lambda model: {}(make(model))
"""
DECODING = """
import keras_seq.inference.translator as translator
translator.Translator.translate = {}(translator.Translator.translate)
"""


def test_sigterm_during_evaluation_keeps_the_checkpoint_and_exits_with_143(folder):
    """Training saves a checkpoint before it validates, so no update is lost."""
    code = SAYS + EVALUATION.format("says")
    check_validation(
        folder, "evaluation", begun(folder, "evaluation", code, training__validate_every=3)
    )


@pytest.mark.parametrize(("how", "backend"), [("deaf", "tensorflow"), *weekly(("says", "jax"))])
def test_sigterm_during_decoding_keeps_the_checkpoint_and_exits_with_143(folder, how, backend):
    name = f"decoding-{how}-{backend}"
    wrapper = how if how == "says" else "(lambda _: deaf)"
    code = on(backend) + DEAF + SAYS + DECODING.format(wrapper)
    check_validation(folder, name, begun(folder, name, code, training__validate_every=3))


def test_sigterm_during_a_save_completes_it_and_exits_with_143(folder):
    name = "save"
    training = begun(folder, name, HOLD_SAVES.format(signal.SIGTERM), training__checkpoint_every=2)
    training.wait_for("begin save")
    ended, said, seconds = training.signalled(signal.SIGTERM)
    assert (ended, seconds < 5) == (143, True), (seconds, said)
    run = Run.open(folder / name)
    assert run.checkpoints.steps == [2]
    assert not list(run.path.rglob(".tmp-*"))
    assert "step 2 is saved" in said


def test_second_interrupt_exits_at_once_with_the_earlier_checkpoint(folder):
    code = (
        DEAF
        + """
import keras_seq.storage.checkpoints.directory as checkpoint
write = checkpoint.write_tensors
def stuck(path, arrays):
    if "step-00000004" in str(path):
        deaf()
    return write(path, arrays)
checkpoint.write_tensors = stuck
"""
    )
    training = begun(folder, "twice", code, training__checkpoint_every=2)
    training.wait_for("begin")
    training.process.send_signal(signal.SIGINT)
    time.sleep(1)
    # The first signal does not end the process, because two updates are not yet saved.
    assert training.process.poll() is None
    ended, said, seconds = training.signalled(signal.SIGINT)
    assert (ended, seconds < 2) == (130, True), (seconds, said)
    assert Run.open(folder / "twice").checkpoints.steps == [2]
    # The resumed training removes the temporary files of the interrupted save.
    again = Training(command(folder, "twice", **(ENDLESS | {"training__max_steps": 5})))
    ended, said = again.end()
    assert ended == 0, said
    assert "resuming after step 2" in said
    assert not list((folder / "twice").rglob(".tmp-*"))


def test_sigterm_during_text_preparation_leaves_no_run_directory(folder):
    code = """
import keras_seq.preparation.preparing as preparing, time
def slow(*arguments, **options):
    print("begin vocabulary", file=sys.stderr, flush=True)
    time.sleep(1000)
preparing.Tokenizer.train = slow
"""
    training = begun(folder, "text", code)
    training.wait_for("begin vocabulary")
    ended, said, seconds = training.signalled(signal.SIGTERM)
    assert (ended, seconds < 5) == (143, True), (seconds, said)
    assert not (folder / "text").exists()


def test_sigterm_in_a_garbage_collector_callback_exits_with_143(folder):
    """JAX registers a garbage collector callback, even if the backend is TensorFlow."""
    code = """
import gc, os, time
def in_callback(phase, _):
    gc.callbacks.remove(in_callback)
    os.kill(os.getpid(), 15)
    for _ in range(1000):
        pass
def collects(*_, **__):
    gc.callbacks.append(in_callback)
    gc.collect()
    print("went on", file=sys.stderr, flush=True)
    time.sleep(1000)
"""
    code += f"{INSTEAD_OF_FIT}instead_of_fit(lambda _: collects)"
    ended, said = begun(folder, "callback", code).end()
    assert ended == 143, said
    assert said.endswith(
        "went on\nstopped by a signal; nothing was trained yet: the same command resumes from there"
    )
    assert Run.open(folder / "callback").checkpoints.steps == []
