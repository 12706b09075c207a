"""Every example in a docstring runs, and every public layer, model and search has one."""

import doctest
import importlib
import os
from pathlib import Path

import pytest

from keras_seq import layers, metrics, models, search

pytestmark = [pytest.mark.jax, pytest.mark.docs]

ROOT = Path(__file__).resolve().parents[1]
# What an example may use without importing it.
PUBLIC = {
    name: getattr(module, name)
    for module in (layers, metrics, models, search)
    for name in module.__all__
}
# Examples that train, and are skipped here: README or docs show the same, and their blocks run.
TOO_LONG = {
    "keras_seq.analysis.diagnosis.diagnosing",
    "keras_seq.evaluation.evaluating",
    "keras_seq.inference.generator",
    "keras_seq.training.trainer",
    "keras_seq.inference.translator",
}
FOLDERS = {"keras_seq": ROOT / "keras_seq", "keras_seq_cli": ROOT / "cli"}
# Of layers and models the contract shows that JAX says what TensorFlow says; their examples are
# many programs to compile. Asked for by `KERAS_SEQ_ROWS=first`, see tests/test_backends.py.
IN_THE_CONTRACT = ("keras_seq.layers.", "keras_seq.models.")
LEFT_OUT = IN_THE_CONTRACT if os.environ.get("KERAS_SEQ_ROWS") == "first" else ()


def module_names():
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            if ">>> " in path.read_text(encoding="utf-8"):
                parts = path.relative_to(folder).with_suffix("").parts
                name = ".".join([package, *(part for part in parts if part != "__init__")])
                if not name.startswith(LEFT_OUT):
                    yield name


@pytest.mark.parametrize("name", list(module_names()))
def test_docstring_examples_pass(name, tmp_path, monkeypatch):
    # Beside the checkout, so that an example may write files; imports need no current directory.
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(
        importlib.import_module(name),
        extraglobs=PUBLIC,
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    )
    assert result.attempted > 0 or name in TOO_LONG
    assert result.failed == 0, "see the report above"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (module, name)
        for module in (layers, metrics, models, search)
        for name in module.__all__
        if isinstance(getattr(module, name), type) and not issubclass(getattr(module, name), tuple)
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_public_class_has_an_example(module, name):
    assert ">>> " in (getattr(module, name).__doc__ or "")
