"""Every docstring example runs; every public layer, metric, model and search has an example."""

import doctest
import importlib
from pathlib import Path

import pytest

from keras_seq import layers, metrics, models, search

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[1]
# Names that an example may use without importing them.
PUBLIC = {
    name: getattr(module, name)
    for module in (layers, metrics, models, search)
    for name in module.__all__
}
# Modules whose examples are all skipped because they train; tests of the docs run the same code.
TOO_LONG = {
    "keras_seq.analysis.diagnosis.diagnosing",
    "keras_seq.analysis.reports.reporting",
    "keras_seq.estimators.estimator",
    "keras_seq.evaluation.evaluating",
    "keras_seq.inference.generator",
    "keras_seq.pretrained.loading",
    "keras_seq.run.sharing",
    "keras_seq.training.trainer",
    "keras_seq.inference.noisy_channel",
    "keras_seq.inference.translator",
}
FOLDERS = {"keras_seq": ROOT / "keras_seq", "keras_seq_cli": ROOT / "cli"}


def module_names():
    for package, folder in FOLDERS.items():
        for path in sorted(folder.rglob("*.py")):
            if ">>> " in path.read_text(encoding="utf-8"):
                parts = path.relative_to(folder).with_suffix("").parts
                yield ".".join([package, *(part for part in parts if part != "__init__")])


@pytest.mark.parametrize("name", list(module_names()))
def test_docstring_examples_pass(name, tmp_path, monkeypatch):
    # Examples may write files, so run them outside the checkout.
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
