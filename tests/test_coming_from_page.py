"""The names on the page for users of other libraries exist."""

import importlib
import re
from pathlib import Path

import keras
import keras_hub
import pytest

import keras_seq
from keras_seq.settings import setting_keys

PAGE = Path(__file__).parents[1] / "docs" / "coming-from.md"
PARTS = "layers|losses|metrics|callbacks|search|text"


def rows(title):
    """The columns of the table under a heading, without its head."""
    text = PAGE.read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line] for line in lines[2:]]


def names(cell, parts=PARTS):
    return re.findall(rf"\b({parts})\.(\w+)", cell)


@pytest.mark.parametrize("title", ["Keras", "KerasHub", "OpenNMT-tf", "transformers", "yoyodyne"])
def test_names_of_keras_seq_exist(title):
    found = rows(title)
    assert found
    known = set(setting_keys())
    for _, ours, *_ in found:
        for part, name in names(ours):
            assert hasattr(importlib.import_module(f"keras_seq.{part}"), name), name
        for key in re.findall(r"\b(?:training|model|tokenizer|data)\.\w+(?:\.\w+)?", ours):
            assert key in known, key
        for name in re.findall(r"`(Translator|Classifier|Tagger|Generator)\b", ours):
            assert hasattr(keras_seq, name)


@pytest.mark.parametrize(("title", "library"), [("Keras", keras), ("KerasHub", keras_hub)])
def test_names_of_the_other_library_exist(title, library):
    for theirs, *_ in rows(title):
        for part, name in names(theirs, "layers|losses|metrics|callbacks|ops|samplers|tokenizers"):
            assert hasattr(getattr(library, part), name), name
