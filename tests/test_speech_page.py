"""Every command and Python block of docs/speech.md runs, in order and in one process."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from sound_files import write_sounds, write_streams

pytestmark = pytest.mark.docs

PAGE = Path(__file__).resolve().parents[1] / "docs" / "speech.md"
EXAMPLES = PAGE.parents[1] / "examples"
SMALL = {
    "training.max_steps": 1,
    "model.num_mels": 8,
    "model.num_layers": 1,
    "model.units": 8,
}


@pytest.mark.weekly
def test_commands_of_the_speech_page_run(tmp_path, monkeypatch, keras_seq_command):
    for count, seed, name in ((40, 1, "words"), (6, 2, "words-valid")):
        shutil.move(write_sounds(tmp_path, count, seed), tmp_path / f"{name}.tsv")
    for count, seed, name in ((20, 3, "spans"), (4, 4, "spans-valid")):
        shutil.move(write_streams(tmp_path, count, seed), tmp_path / f"{name}.tsv")
    for seed, name in ((1, "hello"), (2, "goodbye")):
        shutil.copy(tmp_path / f"{seed}-0.wav", tmp_path / f"{name}.wav")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```bash\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    printed = {}
    for line in "".join(blocks).splitlines():
        program, *arguments = shlex.split(line)
        assert program == "keras-seq"
        if arguments[0] == "train":
            arguments += [f"--set={key}={value}" for key, value in SMALL.items()]
        if arguments[0] == "export":
            arguments += ["--verify", "1"]
        outcome = keras_seq_command(*arguments)
        assert outcome.code == 0, f"{line}\n{outcome.err}"
        printed[arguments[0], len(arguments)] = outcome.lines
    assert len(printed["transcribe", 4]) == 2
    for name in ("words", "wake"):
        assert (tmp_path / "served" / name / "1" / "saved_model.pb").is_file()


@pytest.mark.weekly
def test_every_python_block_of_the_speech_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) >= 5
    names: dict = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    printed = capsys.readouterr().out.split("\n")
    # Expected frames: 61 for one second, and 30 complete frames for half a second.
    assert printed[0] == "(2, 61, 32) [61 30]"
    assert printed[1] == "True"


def test_examples_named_on_the_speech_page_exist():
    named = re.findall(r"examples/(\w+\.py)", PAGE.read_text("utf-8"))
    assert named and all((EXAMPLES / name).is_file() for name in named)
