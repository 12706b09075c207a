"""Every command of docs/language-models.md runs on a small text with a small model."""

import json
import math
import random
import re
import shlex
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

PAGE = Path(__file__).resolve().parents[1] / "docs" / "language-models.md"
SMALL = {
    "training.max_steps": 1,
    "training.sample_count": 1,
    "search.max_length": 16,
    "model.units": 8,
    "model.num_layers": 1,
}
SMALL_MODEL = {
    "lm-transformer": {"model.feedforward_units": 8, "model.num_heads": 2},
    "lm-characters": {"model.feedforward_units": 8, "model.num_heads": 2},
    "lm-gru": {"model.embedding_units": 8},
    "lm-lstm": {"model.embedding_units": 8},
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
    for name, text in (("train", lines), ("valid", lines[:3]), ("prompts", ["a man", "", "two"])):
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in text))
    return folder


def blocks(language):
    text = PAGE.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def small(arguments):
    if arguments[0] != "train":
        return arguments
    (preset,) = [argument for argument in arguments if argument in SMALL_MODEL]
    return [*arguments, *(f"--set={k}={v}" for k, v in (SMALL | SMALL_MODEL[preset]).items())]


@pytest.mark.weekly
def test_language_model_page_commands_and_python_run(folder, monkeypatch, keras_seq_command):
    monkeypatch.chdir(folder)
    commands = [shlex.split(line) for block in blocks("bash") for line in block.split("\n") if line]
    said = {}
    for program, *arguments in commands:
        assert program == "keras-seq"
        outcome = keras_seq_command(*small(arguments))
        assert outcome.code == 0, f"{shlex.join(arguments)}\n{outcome.err}"
        said[shlex.join(arguments)] = outcome.out.decode()
    (python,) = blocks("python")
    overrides = "".join(f'"{k}": {v},' for k, v in (SMALL | SMALL_MODEL["lm-gru"]).items())
    exec(python.replace('"training.max_minutes": 5', overrides), {})
    texts = said["generate runs/lm --prompt 'A man' --prompt 'Two dogs' --n-best 3 --seed 1"]
    # The vocabulary has no capital letters, but byte tokens reproduce them.
    starts = [line[:5] for line in texts.splitlines()]
    assert starts == ["A man"] * 3 + ["Two d"] * 3
    scored = json.loads(said["likelihood runs/lm valid.txt --each corpus"])
    assert scored["lines"] == 3
    assert scored["perplexity"] == pytest.approx(
        math.exp(-scored["log_probability"] / scored["tokens"])
    )
