"""Which of these tests JAX runs, see tests/conformance/conftest.py: of each the first case.

The truth here is numpy's or Keras' own, and TensorFlow runs every case against it. That JAX says
what TensorFlow says, and that its gradients are right, is shown for every row of the contract.
"""

import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("KERAS_SEQ_ROWS") != "first":
        return
    seen: set[tuple[Path, str]] = set()
    left_out = []
    for item in items:
        if FOLDER not in item.path.parents:
            continue
        test = item.path, getattr(item, "originalname", item.name)
        if test in seen:
            left_out.append(item)
        seen.add(test)
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]
