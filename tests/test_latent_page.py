"""Every command of docs/latent-variables.md runs on a small text with a small model."""

import random
import re
import shlex
from pathlib import Path

import pytest

pytestmark = [pytest.mark.docs, pytest.mark.usefixtures("without_graphs")]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "latent-variables.md"
SMALL = {
    "training.max_steps": 1,
    # Skip sample texts, which would need a compiled search.
    "training.sample_count": 0,
    "search.max_length": 16,
    "search.beam_size": 2,
    "model.latent_units": 4,
    "model.embedding_units": 8,
    "model.encoder_units": 8,
    "model.decoder_units": 8,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that the page names."""
    folder = tmp_path_factory.mktemp("page")
    words = random.Random(1)
    lines = [
        f"{words.choice(['a man', 'two dogs'])} {words.choice(['run', 'sit', 'sleep'])} {n}"
        for n in range(60)
    ]
    for name, text in (("train", lines), ("valid", lines[:3])):
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in text))
    return folder


def blocks(language):
    text = PAGE.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.weekly
def test_latent_variables_page_commands_and_python_run(folder, monkeypatch, keras_seq_command):
    monkeypatch.chdir(folder)
    commands = [shlex.split(line) for block in blocks("bash") for line in block.split("\n") if line]
    said = {}
    for program, *arguments in commands:
        assert program == "keras-seq"
        small = [f"--set={key}={value}" for key, value in SMALL.items()]
        more = small if arguments[0] == "train" else []
        outcome = keras_seq_command(*arguments, *more)
        assert outcome.code == 0, f"{shlex.join(arguments)}\n{outcome.err}"
        said[arguments[0]] = outcome.lines
    (python,) = blocks("python")
    overrides = "".join(f'"{key}": {value},' for key, value in SMALL.items())
    exec(python.replace('"training.max_minutes": 5', overrides), {})
    assert [len(said[name]) for name in ("generate", "interpolate", "reconstruct")] == [5, 7, 3]
    assert said["export"] == ["models/vae/1"]
