"""Which laws run on JAX, and over which rows.

On JAX most of a law's time is compiling. That the outputs of every row agree with those of
TensorFlow is shown for all rows, so what TensorFlow shows of outputs alone holds there too. What is
left for `tests/test_backends.py` to ask for (`KERAS_SEQ_ROWS=first`) are gradients, the precision
of accelerators, and steps, which are compiled otherwise: of the first row of each public name. By
hand JAX runs every law over every row:

    KERAS_BACKEND=jax python -m pytest tests/conformance
"""

import os
from pathlib import Path

import pytest
from conformance.table import ROWS

FOLDER = Path(__file__).parent
# By file, what a test's name must have in it.
ON_JAX = {
    "test_harness.py": "",
    "test_law_dtypes.py": "mixed_bfloat16",
    "test_law_gradients.py": "",
    "test_law_padding.py": "gradients",
    "test_law_steps.py": "",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("KERAS_SEQ_ROWS") != "first":
        return
    first = {row.public_name: row.name for row in reversed(ROWS)}
    left_out = [item for item in items if not _runs(item, set(first.values()))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if _runs(item, set(first.values()))]


def _runs(item: pytest.Item, names: set[str]) -> bool:
    if item.path.parent != FOLDER:
        return True
    part = ON_JAX.get(item.path.name)
    if part is None or part not in item.name:
        return False
    row = getattr(item, "callspec", None) and item.callspec.params.get("row")
    return row is None or row.name in names
