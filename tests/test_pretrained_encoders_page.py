"""Every command of docs/pretrained-encoders.md runs; a small encoder replaces the real one."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest
from hub_preset import save_preset
from label_runs import labeled_lines, write_lines

from keras_seq.text.dates import date_pairs

pytestmark = [pytest.mark.docs, pytest.mark.usefixtures("without_graphs")]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "pretrained-encoders.md"
SMALL = {"training.max_steps": 1, "training.sample_count": 1}
DECODER = {
    "model.units": 8,
    "model.feedforward_units": 8,
    "model.num_heads": 1,
    "model.num_decoder_layers": 1,
    "search.max_length": 4,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files that the page names, and a small encoder in KerasHub's download cache."""
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    save_preset(tmp_path / "keras" / "keras-seq" / "bert_tiny_en_uncased")
    write_lines(tmp_path / "weather.tsv", labeled_lines(80, 1))
    write_lines(tmp_path / "dates.tsv", date_pairs(80, seed=1))
    (tmp_path / "texts.txt").write_text("rain\n\n12 May\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(language):
    text = PAGE.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def small(arguments):
    if arguments[0] != "train":
        return arguments
    overrides = SMALL if "classify" in arguments else SMALL | DECODER
    return [*arguments, *(f"--set={key}={value}" for key, value in overrides.items())]


@pytest.mark.weekly
def test_pretrained_encoders_page_commands_and_python_run(folder, keras_seq_command):
    lines = [line for block in blocks("bash") for line in block.split("\n") if line]
    commands = [shlex.split(line) for line in lines]
    said = {}
    for program, *arguments in commands:
        assert program == "keras-seq"
        stdin = b""
        if "<" in arguments:
            *arguments, _, name = arguments
            stdin = Path(name).read_bytes()
        outcome = keras_seq_command(*small(arguments), stdin=stdin)
        assert outcome.code == 0, f"{shlex.join(arguments)}\n{outcome.err}"
        said[shlex.join(arguments)] = outcome.out.decode()
    (python,) = blocks("python")
    overrides = "".join(f'"{key}": {value},' for key, value in SMALL.items())
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(python.replace('"training.max_minutes": 5', overrides), {})
    assert len(said["classify runs/weather texts.txt"].splitlines()) == 3
    assert len(said["translate runs/dates"].splitlines()) == 3
    assert (folder / "served" / "weather" / "1" / "saved_model.pb").is_file()
    assert printed.getvalue().strip().splitlines()[-1] in ("['cold']", "['dry']", "['wet']")
