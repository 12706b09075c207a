"""Every function that docs/architecture.md names exists in the stated file."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMES = re.findall(r"`([\w/]+\.py):([\w.]+)`", PAGE)


def definitions(path):
    """Yields the names of all functions and classes, and methods as `Class.method`."""
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name
            if isinstance(node, ast.ClassDef):
                yield from (
                    f"{node.name}.{inner.name}"
                    for inner in node.body
                    if isinstance(inner, ast.FunctionDef)
                )


def test_each_walk_has_ten_steps():
    assert re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE) == [str(i + 1) for i in range(10)] * 3


@pytest.mark.parametrize(("path", "name"), NAMES)
def test_function_on_the_page_exists(path, name):
    assert name in definitions(path)
