"""Marks parameters of tests that run every week instead of for every change."""

from collections.abc import Iterable
from typing import Any, TypeVar

import keras
import pytest

T = TypeVar("T")


def weekly_but(values: Iterable[Any], *now: Any) -> list[Any]:
    """Returns the parameters `values`, all but `now` with the marker `weekly`."""
    chosen = list(values)
    assert set(now) <= set(chosen)
    return [
        value if value in now else pytest.param(value, marks=pytest.mark.weekly) for value in chosen
    ]


def weekly_on_jax(test: T) -> T:
    """Marks a test whose programs take JAX half a minute to compile."""
    return pytest.mark.weekly(test) if keras.backend.backend() == "jax" else test
