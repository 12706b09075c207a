"""Replacements for TensorFlow Addons give the same numbers, and docs/migration.md is complete."""

import inspect
import re
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_seq import layers, losses, search

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
MODULES = {"layers": layers, "losses": losses, "search": search}
RECORDED = np.load(ROOT / "tests" / "addons" / "recorded.npz")


def blocks(kind):
    """Copied from tests/addons/make.py, which runs in another environment."""
    return dict(re.findall(rf"<!-- {kind}: (\w+) -->\n+```python\n(.*?)```", PAGE, re.DOTALL))


def recorded(name):
    """Maps each variable of the old block to the list of its recorded arrays."""
    found = {}
    for key in RECORDED.files:
        block, variable, *place = key.split("/")
        if block == name != "names" and place:
            found.setdefault(variable, []).append(RECORDED[key])
    return found


def run_after(name):
    """Runs the new block with the old weights and returns its variables."""
    (imports,), (inputs,) = blocks("imports").values(), blocks("inputs").values()
    namespace = {}
    exec(imports + inputs, namespace)
    if "weights" in recorded(name):
        namespace["weights"] = recorded(name)["weights"]
    exec(blocks("after")[name], namespace)
    return namespace


BEFORE, AFTER = blocks("before"), blocks("after")


@pytest.mark.parametrize("module", ["rnn", "seq2seq", "text"])
def test_every_old_name_has_a_row(module):
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("|")]
    named = {name for row in rows for name in re.findall(r"`(?:tfa\.\w+\.)?(\w+)`", row)}
    assert set(RECORDED[f"names/{module}"].tolist()) <= named


def test_every_new_name_exists():
    tables = "\n".join(line for line in PAGE.splitlines() if line.startswith("|"))
    found = re.findall(r"`(layers|losses|search|training)\.(\w+)", tables)
    assert len(found) > 30
    for module, name in found:
        assert name in MODULES[module].__all__, name


def arguments_of(name):
    """Returns the argument names of a new function or class, including its base classes."""
    part = next(getattr(module, name) for module in MODULES.values() if name in module.__all__)
    makers = [base.__init__ for base in part.__mro__[:-1]] if isinstance(part, type) else [part]
    return {argument for maker in makers for argument in inspect.signature(maker).parameters}


@pytest.mark.parametrize("old", [key[6:] for key in RECORDED.files if key.startswith("names/")][3:])
def test_every_addons_argument_exists_or_is_mentioned(old):
    pattern = rf"^\| (?:`\w+`, )*`(?:tfa\.\w+\.)?{old}`[^|]*\|([^|]*)\|"
    (new,) = re.findall(pattern, PAGE, re.MULTILINE)
    known = {"name", "kwargs"}.union(*map(arguments_of, re.findall(r"`\w+\.(\w+)", new)))
    for argument in RECORDED[f"names/{old}"].tolist():
        gone = argument.endswith(("_regularizer", "_constraint"))
        assert gone or argument in known or f"`{argument}" in PAGE, argument


def test_every_before_block_has_an_after_block():
    assert list(BEFORE) == list(AFTER)


def test_recordings_are_of_the_blocks_on_the_page():
    (inputs,) = blocks("inputs").values()
    sources = {key.split("/")[0]: str(RECORDED[key]) for key in RECORDED.files if "source" in key}
    assert sources == {name: inputs + text for name, text in BEFORE.items()}


@pytest.mark.parametrize("name", AFTER)
def test_new_blocks_give_the_recorded_addons_numbers(name):
    new, old = run_after(name), recorded(name)
    common = [variable for variable in old if variable in new and variable != "weights"]
    assert common
    for variable in common:
        values = keras.tree.flatten(new[variable])
        assert len(values) == len(old[variable]), variable
        for value, before in zip(values, old[variable], strict=True):
            value = np.asarray(keras.ops.convert_to_numpy(value))
            assert value.shape == before.shape, variable
            np.testing.assert_allclose(value, before, rtol=0, atol=1e-5, err_msg=variable)
