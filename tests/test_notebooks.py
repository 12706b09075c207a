"""The notebooks run, in a short form, and contain the results of a complete run."""

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
SMALL = {
    "training.max_steps": 2,
    "training.validate_every": 2,
    "training.checkpoint_every": 2,
    "training.sample_count": 1,
}


def load_runner():
    spec = importlib.util.spec_from_file_location("run_notebooks", DOCS / "run_notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shorten(source):
    """Returns a cell with a training of two updates or one epoch."""
    small = ", ".join(f'"{key}": {value}' for key, value in SMALL.items())
    source = re.sub(r'"training\.max_minutes": \d+', small, source)
    # A model that has learned nothing has ties, by which an export may differ from its run.
    source = source.replace('export("served/dates")', 'export("served/dates", verify=0)')
    return source.replace("EPOCHS = 12", "EPOCHS = 1").replace("batch(4000,", "batch(128,")


@pytest.mark.docs
@pytest.mark.weekly
@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS])
def test_notebook_runs_in_short_form(name):
    load_runner().run(DOCS / "notebooks" / f"{name}.ipynb", shorten)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_has_its_results_and_opens_in_colab(path):
    import json

    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert outputs and not any(output["output_type"] == "error" for output in outputs)
    first = "".join(notebook["cells"][0]["source"])
    assert f"docs/notebooks/{path.name})" in first and "colab" in first
    assert "install" in code[0]["metadata"]["tags"]
    # Small enough for a repository.
    assert path.stat().st_size < 300_000


def test_there_are_five_notebooks():
    assert len(NOTEBOOKS) == 5
