"""Cases that take the path of another one, and run only when they are asked for.

    python -m pytest --further

A test has them where the suite would take minutes to show again what its other cases show.
"""

from typing import Any

import pytest


def further(*values: Any) -> Any:
    """A parameter of `pytest.mark.parametrize` or of a fixture, of such a case."""
    return pytest.param(*values, marks=pytest.mark.further)


def leave_out_further(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves them out, unless pytest was given the option or the names of single tests."""
    if config.getoption("--further") or any("::" in argument for argument in config.args):
        return
    left_out = [item for item in items if item.get_closest_marker("further")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("further")]
