"""Every command of docs/training.md runs, on a small text, with a small model, for one update.

All run in this process, which spares each the seconds that TensorFlow takes to come up. So a block
has one command on a line, `keras-seq` and its arguments; what else a shell can do is not for there.
Files that a command names are made by `folder`.
"""

import gzip
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "training.md"

SMALL = {
    "training.max_steps": 1,
    "training.validate_every": 1,
    "training.checkpoint_every": 1,
    "training.sample_count": 0,
    "search.max_length": 4,
}
SMALL_MODEL = {
    "transformer": {
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "model.units": 16,
        "model.feedforward_units": 16,
        "model.num_heads": 2,
    },
    "rnn": {
        "model.embedding_units": 8,
        "model.encoder_units": 8,
        "model.decoder_units": 8,
        "model.attention_units": 8,
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the page names."""
    folder = tmp_path_factory.mktemp("page")
    source = [f"a dog runs {n} times" for n in range(40)]
    files = {
        "train.en": source,
        "train.de": [f"{n} times runs a dog" for n in range(40)],
        "train.weights": [str(n % 3) for n in range(40)],
        "train.links": ["0-3 1-4 2-2 3-0 4-1"] * 40,
        "valid.en": source[:4],
        "other.tsv": [f"{line}\tdog {n}" for n, line in enumerate(source)],
        # As wide as the small model's embedding.
        "vectors.txt": [f"dog {'0.5 ' * 16}", f"runs {'0.1 ' * 16}"],
        "valid.de": source[:4],
    }
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    (folder / "corpus").mkdir()
    for part in ("news", "web"):
        for side in ("en", "de"):
            with gzip.open(folder / "corpus" / f"{part}.{side}.gz", "wt") as file:
                file.writelines(f"{part} {line}\n" for line in source)
    return folder


def blocks(language):
    text = PAGE.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands():
    lines = [
        line for block in blocks("bash") for line in block.replace("\\\n", " ").split("\n") if line
    ]
    return [shlex.split(line, comments=True) for line in lines if not line.startswith("#")]


def with_small_model(arguments):
    if arguments[0] != "train":
        return arguments
    family = "rnn" if "rnn" in " ".join(arguments) else "transformer"
    small = SMALL | SMALL_MODEL[family]
    return [*arguments, *(f"--set={key}={value}" for key, value in small.items())]


def test_every_command_runs(folder, monkeypatch, keras_seq_command):
    monkeypatch.chdir(folder)
    found = commands()
    assert len(found) > 5
    for program, *arguments in found:
        assert program == "keras-seq", program
        outcome = keras_seq_command(*with_small_model(arguments))
        assert outcome.code == 0, f"{shlex.join(arguments)}\n{outcome.err}"
    # After the commands, for they are about the same runs.
    for block in blocks("python"):
        assert '"training.max_steps": 2000' in block
        exec(block.replace("2000", "1"), {})
