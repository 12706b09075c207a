"""Every block of docs/generation-from-vectors.md and docs/kernel-regression.md runs."""

import re
from pathlib import Path

import keras
import numpy as np
import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"


def names_of(page):
    """Runs the blocks of a page in order and returns the variables that they define."""
    text = (DOCS / page).read_text("utf-8")
    names: dict = {}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        exec(block, names)
    return names


@pytest.mark.docs
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="it ends with a SavedModel")
@pytest.mark.weekly
def test_generation_page_trains_searches_and_serves_a_generator(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    keras.utils.set_random_seed(1)
    names = names_of("generation-from-vectors.md")
    true = ["bright above dark" if row[0] == 4 else "dark above bright" for row in names["outputs"]]
    assert len(set(true)) == 2
    assert names["captions"] == true
    assert names["scores"].shape == (4, 4)
    assert names["drawn"].tokens.shape[:2] == (4, 3)
    served = names["served"](picture=names["inputs"]["source"])
    assert [text.decode() for text in served["text"].numpy()] == true
    np.testing.assert_allclose(served["score"], names["found"].scores[:, 0], atol=1e-5)
    # A second run restores the weights of the completed training.
    (checkpoint, weights) = (names["checkpoint"], names["model"].get_weights())
    again = type(checkpoint)(names["CheckpointStore"]("captions"), every=20, steps_per_epoch=60)
    names["model"].set_weights([np.zeros_like(weight) for weight in weights])
    assert again.restore(names["model"]) == 60
    for left, right in zip(names["model"].get_weights(), weights, strict=True):
        np.testing.assert_array_equal(left, right)


def test_kernel_regression_page_equals_the_closed_form_up_to_rounding(capsys):
    names_of("kernel-regression.md")
    assert float(capsys.readouterr().out) < 1e-6
