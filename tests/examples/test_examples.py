"""Each example runs, in a small form, as its docstring says."""

import os
import subprocess
from pathlib import Path

import pytest
import warm_python

FOLDER = Path(__file__).parents[2] / "examples"
ARGUMENTS = {
    "attention_from_parts.py": ["--steps", "5", "--units", "8"],
    "dates.py": ["--steps", "3", "--pairs", "2000"],
}
SAYS = {
    "attention_from_parts.py": "of the letters of unseen strings right",
    "dates.py": "of 200 exactly right",
}


def test_every_example_is_listed():
    assert {path.name for path in FOLDER.glob("*.py")} == set(ARGUMENTS)


@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_example_runs(name):
    done = subprocess.run(
        [*warm_python.python(), FOLDER / name, *ARGUMENTS[name]],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(FOLDER.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout
