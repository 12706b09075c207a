"""Every example runs in a small version, as its docstring says."""

import re
import runpy
import sys
from pathlib import Path

import pytest
from weekly import weekly_but

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
    "sweep.py": ["--trials", "1", "--steps", "2", "--pairs", "100"],
    "tagger.py": ["--steps", "2"],
    "transformer_from_parts.py": ["--steps", "5", "--units", "8"],
    "trigger_word.py": ["--streams", "2", "--epochs", "1"],
    "word_vectors.py": ["--sentences", "500"],
}
# The last result that each example prints. It must be within BOUNDS, or else from 0 to 100: the
# accuracy of a small version, after two updates, can have any value.
RESULTS = {
    "attention_from_parts.py": r"([\d.]+)% of 200 unseen strings reversed without a mistake",
    "captions.py": r"([\d.]+)% of 500 new pictures described right, captions never seen",
    "classifier.py": r"([\d.]+)% of 500 unseen texts right",
    "custom_cell.py": r"([\d.]+)% of the brackets counted right in strings twice as long",
    "dates.py": r"(\d+) of 200 exactly right",
    "digits_attention.py": r"word error rate ([\d.]+)%, character error rate [\d.]+% of 200 utt",
    "digits_ctc.py": r"beam of 8: word error rate ([\d.]+)%",
    "information_bottleneck.py": r"I\(X; Y\) = ([\d.]+) nats",
    "kernel_regression.py": r"attention is Nadaraya and Watson's regression to within ([\d.e-]+)",
    "language_model.py": r"(\d+) of 100 sums right",
    "pretrained_encoder.py": r"([\d.]+)% of 400 right, about nouns without a label",
    "recurrent_cells.py": r"GRU, reset before: mean squared error ([\d.]+)",
    "sentence_space.py": r"([\d.]+)% of the words of unseen sentences come back",
    "sweep.py": r"lowest validation loss ([\d.]+)",
    "tagger.py": r"F1 of entities in 500 sentences: ([\d.]+)",
    "transformer_from_parts.py": r"([\d.]+)% of 200 unseen strings sorted without a mistake",
    "trigger_word.py": r"detector: precision ([\d.]+)%",
    "word_vectors.py": r"(\d+) of 30 capitals found by analogy",
}
BOUNDS = {
    "dates.py": (0, 200),
    # Insertions can raise an error rate above 100 %.
    "digits_attention.py": (0, 10_000),
    "digits_ctc.py": (0, 10_000),
    # First the information in closed form, then float32 against float64.
    "information_bottleneck.py": (1.2275, 1.2285),
    "kernel_regression.py": (0, 1e-5),
    # A constant prediction has a mean squared error of 1/6.
    "recurrent_cells.py": (0, 1),
    "tagger.py": (0, 1),
    "word_vectors.py": (0, 30),
}
# The others take more than ten seconds, most of them to build their graphs.
QUICK = ("attention_from_parts.py", "custom_cell.py", "kernel_regression.py")


def test_every_example_is_listed():
    # `spoken_digits.py` has tests of its own.
    assert {path.name for path in FOLDER.glob("*.py")} == {*ARGUMENTS, "spoken_digits.py"}


@pytest.mark.parametrize("name", weekly_but(sorted(ARGUMENTS), *QUICK))
def test_example_in_small_prints_a_result_within_bounds(name, monkeypatch, capsys):
    # In this process, because TensorFlow takes seconds to start.
    monkeypatch.setattr(sys, "argv", [name, *ARGUMENTS[name]])
    monkeypatch.syspath_prepend(FOLDER)
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    printed = capsys.readouterr().out
    found = re.search(RESULTS[name], printed)
    assert found, printed
    least, most = BOUNDS.get(name, (0, 100))
    assert least <= float(found[1]) <= most
