"""A training killed with SIGKILL, even during saves, ends like an uninterrupted training."""

import random
import signal

import pytest
from faults.training_process import (
    Training,
    command,
    last_arrays,
    validations,
    write_corpus,
)

from keras_seq.run import Run

pytestmark = pytest.mark.process

LIMITS = {
    "training__max_steps": 21,
    "training__checkpoint_every": 2,
    "training__validate_every": 10,
    "model__dropout": 0.3,
}
RECURRENT = LIMITS | {
    "model__embedding_units": 8,
    "model__encoder_units": 8,
    "model__decoder_units": 8,
    "model__attention_units": 8,
}
# Prints a line after each update, and kills the process SECONDS after event number EVENTS. Events
# are steps of saves and, if EVERYWHERE is true, also updates and translations.
KILLED = """
import os, threading, time
import keras_seq.storage.checkpoints.directory as files
import keras_seq.storage.checkpoints.store as checkpoints
import keras_seq.training.loop as loop
import keras_seq.inference.translator as translator
begun = 0
def event(call):
    def told(*arguments, **options):
        global begun
        begun += 1
        if begun == EVENTS:
            threading.Timer(SECONDS, os.kill, (os.getpid(), 9)).start()
        # A moment to be killed in.
        time.sleep(0.01)
        return call(*arguments, **options)
    return told
checkpoints.os = type(sys)("os")
checkpoints.os.__dict__.update(os.__dict__)
after = loop.TrainingLoop._after_update
def said(self, *arguments, **options):
    # In one piece, or not at all.
    os.write(2, f"made {self.limit.step}\\n".encode())
    return after(self, *arguments, **options)
loop.TrainingLoop._after_update = said
for owner, name in (
    (files, "write_tensors"),
    (files, "write_file"),
    (checkpoints, "write_file"),
    (checkpoints, "remove_temporaries"),
    (checkpoints.os, "rename"),
    (loop.TrainingLoop, "_after_update"),
    (translator.Translator, "translate"),
):
    if owner in (files, checkpoints, checkpoints.os) or EVERYWHERE:
        setattr(owner, name, event(getattr(owner, name)))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    write_corpus(folder)
    return folder


def killed_after(run, arguments, events, seconds, everywhere, code=""):
    """Runs a training that is killed, checks its newest checkpoint and returns its output."""
    killed = KILLED.replace("EVENTS", str(events)).replace("SECONDS", str(seconds))
    killed = code + killed.replace("EVERYWHERE", str(everywhere))
    ended, said = Training(arguments, killed).end()
    assert ended == -signal.SIGKILL, said
    made = [int(line.split()[1]) for line in said.split("\n") if line.startswith("made ")]
    if made:
        saved = Run.open(run).checkpoints.latest_step or 0
        assert made[-1] - LIMITS["training__checkpoint_every"] <= saved <= made[-1], said
    return said


def assert_the_same_end(straight, killed):
    assert not list(killed.rglob(".tmp-*"))
    expected, arrays = last_arrays(straight), last_arrays(killed)
    assert arrays.keys() == expected.keys()
    assert [name for name in arrays if arrays[name] != expected[name]] == []
    assert validations(killed) == validations(straight)
    samples = [(path / "samples.txt").read_text() for path in (killed, straight)]
    assert samples[0] == samples[1]
    assert Run.open(killed).checkpoints.best_step == Run.open(straight).checkpoints.best_step


def test_training_killed_at_random_moments_ends_with_identical_weights(folder):
    """Kills happen in updates, saves and validations of a recurrent model;
    benchmarks/kill_and_resume.py does the same twenty times, at random times."""
    preset = {"preset": "rnn-small"}
    straight = Training(command(folder, "rnn", **preset, **RECURRENT))
    arguments = command(folder, "killed-rnn", **preset, **RECURRENT)
    generator = random.Random(2)
    made = 0
    for _ in range(2):
        events, seconds = generator.randrange(1, 60), generator.uniform(0, 0.1)
        made += "made " in killed_after(folder / "killed-rnn", arguments, events, seconds, 1)
    assert made >= 1
    assert Run.open(folder / "killed-rnn").checkpoints.latest_step < LIMITS["training__max_steps"]
    code, said = Training(arguments).end()
    assert code == 0 and "damaged" not in said, said
    code, said = straight.end()
    assert code == 0, said
    assert_the_same_end(folder / "rnn", folder / "killed-rnn")


def test_a_second_training_in_a_directory_is_refused_while_the_first_lives(folder):
    endless = LIMITS | {"training__max_steps": 10**6, "training__checkpoint_every": 10**6}
    first = Training(command(folder, "shared", **endless))
    first.wait_for("batches an epoch")
    code, said = Training(command(folder, "shared", **endless)).end()
    assert code == 2
    assert "shared: another training is at work there" in said
    code, said, _ = first.signalled(signal.SIGKILL)
    assert code == -signal.SIGKILL, said
    Run.open(folder / "shared").lock().release()
