"""A model family from one file trains, is killed, resumes, is exported and served."""

import signal
import sys
from pathlib import Path

import pytest
from faults.training_process import SETTINGS, Training, last_arrays, validations
from http_serving import WITHOUT_KERAS, serving

from keras_seq import litert, runtime

pytestmark = pytest.mark.process

PLUGIN = Path(__file__).parents[2] / "examples" / "plugins" / "plain_gru.py"
TELL_UPDATES = """
import os
import keras_seq.training.loop as loop
after = loop.TrainingLoop._after_update
def said(self, *arguments, **options):
    os.write(2, f"made {self.limit.step}\\n".encode())
    return after(self, *arguments, **options)
loop.TrainingLoop._after_update = said
"""


def test_example_has_at_most_60_lines():
    assert len(PLUGIN.read_text().splitlines()) <= 60


@pytest.mark.weekly
def test_family_of_a_file_is_killed_resumed_exported_and_served(tmp_path, keras_seq_process):
    pairs = [f"{word}\t{word[::-1]}\n" for word in ("ab", "bca", "cab", "acb", "ba", "abc") * 20]
    (tmp_path / "pairs.tsv").write_text("".join(pairs))
    settings = SETTINGS | {
        "model.family": "plain-gru",
        "model.units": 16,
        "training.max_steps": 60,
        "training.validate_every": 30,
        "training.checkpoint_every": 10,
    }

    def arguments(run):
        options = [f"--set={key}={value}" for key, value in settings.items()]
        files = [
            "--pairs",
            str(tmp_path / "pairs.tsv"),
            "--valid-pairs",
            str(tmp_path / "pairs.tsv"),
        ]
        return ["train", str(tmp_path / run), *files, f"--import={PLUGIN}", *options]

    code, said = Training(arguments("whole")).end()
    assert code == 0, said
    killed = Training(arguments("killed"), TELL_UPDATES)
    killed.wait_for("made 36")
    killed.process.send_signal(signal.SIGKILL)
    assert killed.end()[0] == -signal.SIGKILL
    code, said = Training(arguments("killed")).end()
    assert code == 0 and "resuming after step 30" in said
    assert last_arrays(tmp_path / "killed") == last_arrays(tmp_path / "whole")
    assert validations(tmp_path / "killed") == validations(tmp_path / "whole")

    # The run names its plugin, and does not import it by itself.
    refused = keras_seq_process("translate", tmp_path / "killed", stdin=b"ab\n")
    assert refused.code == 2
    assert refused.error.endswith(
        "the family 'plain-gru' needs a plugin: add --import plain_gru.py"
    )
    option = f"--import={PLUGIN}"
    outcome = keras_seq_process("translate", tmp_path / "killed", option, stdin=b"ab\nbca\n")
    assert outcome.code == 0, outcome.err
    served = tmp_path / "served"
    exported = keras_seq_process("export", tmp_path / "killed", served, "--verify", 6, option)
    assert exported.code == 0, exported.err
    # The server needs neither the plugin nor Keras.
    program = [sys.executable, "-c", WITHOUT_KERAS]
    with serving(served, program=program, trust=False) as server:
        answers = server.predict([{"text": "ab"}, {"text": "bca"}])
    assert [answer["translation"] for answer in answers] == outcome.lines

    for form, path, load in (
        ("onnx", tmp_path / "onnx", runtime.load),
        ("litert", tmp_path / "a.tflite", litert.load),
    ):
        exported = keras_seq_process(
            "export", tmp_path / "killed", path, "--format", form, "--verify", 6, option
        )
        assert exported.code == 0, exported.err
        assert load(path)(["ab", "bca"]) == outcome.lines
    greedy = keras_seq_process(
        "translate", tmp_path / "killed", option, "--beam-size", 1, stdin=b"ab\nbca\n"
    )
    assert runtime.load(tmp_path / "onnx", beam_size=1)(["ab", "bca"]) == greedy.lines
