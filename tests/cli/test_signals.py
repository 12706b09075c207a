"""Ctrl-C in a command: a running library call finishes, then the command exits."""

import signal

import pytest

from keras_seq.scoring import scores_by_name

# Code of a simulated library module, which raises SIGINT while it works.
WORK = """
def work(*arguments, **options):
    signal.raise_signal(signal.SIGINT)
    done.append(1)
    if twice:
        signal.raise_signal(signal.SIGINT)
        done.append(2)
    return real(*arguments, **options)
"""


@pytest.fixture
def interrupted(keras_seq_command, monkeypatch, tmp_path):
    """Returns a function that interrupts `score` in a module and returns the finished steps."""

    def run(module, twice=False, code=130):
        names = {"__name__": module, "signal": signal, "done": [], "twice": twice}
        names["real"] = scores_by_name
        exec(WORK, names)
        monkeypatch.setattr("keras_seq.scoring.scores_by_name", names["work"])
        (tmp_path / "text").write_text("a b c d\n", encoding="utf-8")
        outcome = keras_seq_command("score", tmp_path / "text", "--reference", tmp_path / "text")
        assert outcome.code == code
        assert "Traceback" not in outcome.err
        return names["done"]

    return run


@pytest.fixture(autouse=True)
def handler():
    """Installs Python's default SIGINT handler, which pytest may have replaced."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def test_interrupt_lets_a_library_finish_its_work(interrupted):
    assert interrupted("tensorflow.python.eager") == [1]


def test_interrupt_leaves_own_and_other_code_immediately(interrupted):
    assert interrupted("keras_seq.scoring.wer") == []
    assert interrupted("sacrebleu") == []


def test_second_interrupt_does_not_wait_for_the_library(interrupted):
    assert interrupted("tensorflow.python.eager", twice=True) == [1]


def test_custom_interrupt_handler_stays_in_place(interrupted):
    came = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        assert interrupted("keras", twice=True, code=0) == [1, 2]
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert came == [signal.SIGINT] * 2
