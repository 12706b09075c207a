"""Marks parameters of tests that run every week instead of for every change."""

from collections.abc import Iterable
from typing import Any, TypeVar

import keras
import pytest

from keras_seq import models

T = TypeVar("T")

# For some cases of a test that otherwise runs by default.
SLOW_AND_WEEKLY = [pytest.mark.slow, pytest.mark.weekly]


def weekly(*cases: tuple[Any, ...]) -> list[Any]:
    """Returns cases of several parameters with the marker `weekly`."""
    return [pytest.param(*case, marks=pytest.mark.weekly) for case in cases]


def weekly_but(values: Iterable[Any], *now: Any) -> list[Any]:
    """Returns the parameters `values`, all but `now` with the marker `weekly`."""
    chosen = list(values)
    assert set(now) <= set(chosen)
    return [
        value if value in now else pytest.param(value, marks=pytest.mark.weekly) for value in chosen
    ]


def is_weekly_on_jax(item: pytest.Item) -> bool:
    """Returns whether a test is left to `.ci/weekly` on JAX, where most of its time is compilation.

    With every change, JAX runs the layers, losses, searches and laws of layers, and trains and
    resumes a run.
    """
    folder, file = item.path.parent.name, item.path.stem
    row = getattr(item, "callspec", None) and item.callspec.params.get("row")
    return keras.backend.backend() == "jax" and (
        item.get_closest_marker("slow") is not None
        or folder in ("inference", "metrics", "models")
        or (folder == "training" and file not in ("test_resume", "test_trainer"))
        or file in ("test_generating", "test_quantization")
        or getattr(row, "public_name", None) in models.__all__
    )


def weekly_on_jax(test: T) -> T:
    """Marks a test whose programs take JAX long to compile, as `is_weekly_on_jax` says."""
    return pytest.mark.weekly(test) if keras.backend.backend() == "jax" else test
