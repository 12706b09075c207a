"""Which rows the laws run over.

On JAX most of a law's time is compiling. `tests/test_backends.py` therefore asks for the first row
of each public name (`KERAS_SEQ_ROWS=first`). That the outputs of every row agree with those of
TensorFlow, and that its gradients are right, is shown for all rows all the same. By hand JAX runs
every row:

    KERAS_BACKEND=jax python -m pytest tests/conformance
"""

import os
from pathlib import Path

import pytest
from conformance.table import ROWS

FOLDER = Path(__file__).parent
OVER_ALL = {"test_law_gradients.py"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("KERAS_SEQ_ROWS") != "first":
        return
    first = {row.public_name: row.name for row in reversed(ROWS)}
    left_out = [item for item in items if not _runs(item, set(first.values()))]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if _runs(item, set(first.values()))]


def _runs(item: pytest.Item, names: set[str]) -> bool:
    if item.path.parent != FOLDER or item.path.name in OVER_ALL:
        return True
    row = getattr(item, "callspec", None) and item.callspec.params.get("row")
    return row is None or row.name in names
