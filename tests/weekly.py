"""Marks parameters of tests that run every week instead of for every change."""

from collections.abc import Iterable
from typing import Any

import pytest


def weekly_but(values: Iterable[Any], *now: Any) -> list[Any]:
    """Returns the parameters `values`, all but `now` with the marker `weekly`."""
    chosen = list(values)
    assert set(now) <= set(chosen)
    return [
        value if value in now else pytest.param(value, marks=pytest.mark.weekly) for value in chosen
    ]
