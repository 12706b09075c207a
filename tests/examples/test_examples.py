"""Each example runs, in a small form, as its docstring says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

FOLDER = Path(__file__).parents[2] / "examples"
ARGUMENTS = {
    "attention_from_parts.py": ["--steps", "5", "--units", "8"],
    "captions.py": ["--steps", "2"],
    "classifier.py": ["--steps", "2"],
    "custom_cell.py": ["--steps", "5", "--units", "8"],
    "dates.py": ["--steps", "3", "--pairs", "2000"],
    "digits_attention.py": ["--utterances", "8", "--epochs", "1", "--units", "4"],
    "digits_ctc.py": ["--utterances", "32", "--epochs", "1", "--units", "4"],
    "information_bottleneck.py": ["--pairs", "500", "--epochs", "1"],
    "kernel_regression.py": [],
    "language_model.py": ["--steps", "3"],
    "pretrained_encoder.py": ["--epochs", "1", "--steps", "1"],
    "recurrent_cells.py": ["--steps", "2", "--length", "6"],
    "sentence_space.py": ["--steps", "2"],
    "tagger.py": ["--steps", "2"],
    "transformer_from_parts.py": ["--steps", "5", "--units", "8"],
    "trigger_word.py": ["--streams", "2", "--epochs", "1"],
    "word_vectors.py": ["--sentences", "500"],
}
SAYS = {
    "attention_from_parts.py": "of 200 unseen strings reversed without a mistake",
    "captions.py": "of 500 new pictures described right, captions never seen",
    "classifier.py": "of 500 unseen texts right",
    "custom_cell.py": "counted right in strings twice as long",
    "dates.py": "of 200 exactly right",
    "digits_attention.py": "of 200 utterances",
    "digits_ctc.py": "beam of 8: word error rate",
    "information_bottleneck.py": "I(X; Y) = 1.228 nats",
    "kernel_regression.py": "attention is Nadaraya and Watson's regression to within",
    "language_model.py": "of 100 sums right",
    "pretrained_encoder.py": "of 400 right, about nouns without a label",
    "recurrent_cells.py": "GRU, reset before: mean squared error",
    "sentence_space.py": "of the words of unseen sentences come back",
    "tagger.py": "F1 of entities in 500 sentences",
    "transformer_from_parts.py": "of 200 unseen strings sorted without a mistake",
    "trigger_word.py": "detector: precision",
    "word_vectors.py": "of 30 capitals found by analogy",
}


def test_every_example_is_listed():
    # `spoken_digits.py` has tests of its own.
    assert {path.name for path in FOLDER.glob("*.py")} == {*ARGUMENTS, "spoken_digits.py"}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_examples_have_fewer_than_100_lines(path):
    assert len(path.read_text("utf-8").splitlines()) < 100


def test_attention_from_parts_has_fewer_than_80_lines():
    assert len((FOLDER / "attention_from_parts.py").read_text("utf-8").splitlines()) < 80


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_example_runs_and_prints_its_result(name):
    done = subprocess.run(
        [sys.executable, FOLDER / name, *ARGUMENTS[name]],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(FOLDER.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout
