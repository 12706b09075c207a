"""kill -9 in the middle of a training and of its saves: the end is that of the straight run."""

import random
import signal
import time

import pytest
from faults.training_process import Training, command, last_arrays, validations, write_corpus

from keras_seq.run import Run

LIMITS = {
    "training__max_steps": 31,
    "training__checkpoint_every": 2,
    "training__validate_every": 10,
    "model__dropout": 0.3,
}
# Says each part of a save as it begins, and takes its time with it.
SLOW_SAVES = """
import os, time
import keras_seq.checkpoints as checkpoints
def slowly(name, call):
    def slow(*arguments):
        print("part", name, file=sys.stderr, flush=True)
        time.sleep(0.01)
        return call(*arguments)
    return slow
checkpoints.write_tensors = slowly("tensors", checkpoints.write_tensors)
checkpoints.write_file = slowly("file", checkpoints.write_file)
checkpoints.write_file_whole = slowly("pointer", checkpoints.write_file_whole)
checkpoints.remove = slowly("remove", checkpoints.remove)
checkpoints.os = type(sys)("os")
checkpoints.os.__dict__.update(os.__dict__)
checkpoints.os.rename = slowly("rename", os.rename)
"""
KILLS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    write_corpus(folder)
    return folder


def test_kills_inside_saves_change_nothing(folder):
    code, said = Training(command(folder, "straight", **LIMITS)).end()
    assert code == 0, said
    generator = random.Random(1)
    saved = [0]
    for _ in range(KILLS):
        training = Training(command(folder, "killed", **LIMITS), SLOW_SAVES)
        # A save has eight parts or so; at least one of them shall come to its end.
        for _ in range(generator.randrange(12, 30)):
            training.wait_for("part")
        time.sleep(generator.uniform(0, 0.01))
        code, said, _ = training.signalled(signal.SIGKILL)
        assert code == -signal.SIGKILL, said
        if saved[-1]:
            assert f"going on after step {saved[-1]:,}" in said
        run = Run.open(folder / "killed")
        assert run.latest_step > saved[-1]
        saved.append(run.latest_step)
    code, said = Training(command(folder, "killed", **LIMITS)).end()
    assert code == 0, said
    assert f"going on after step {saved[-1]:,}" in said
    assert "damaged" not in said
    assert not list((folder / "killed").rglob(".tmp-*"))
    straight, killed = last_arrays(folder / "straight"), last_arrays(folder / "killed")
    assert killed.keys() == straight.keys()
    assert [name for name in killed if killed[name] != straight[name]] == []
    assert validations(folder / "killed") == validations(folder / "straight")
    samples = [(folder / name / "samples.txt").read_text() for name in ("killed", "straight")]
    assert samples[0] == samples[1]


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
