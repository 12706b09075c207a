"""docs/techniques.md: every file, test, example and page that a row names is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "techniques.md"
TEXT = PAGE.read_text("utf-8")


def rows():
    """The cells of each row of each table, with those of the table's head."""
    head: list[str] = []
    for line in TEXT.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            head = []
        elif not head:
            head = cells
        elif not set(line) <= set("|-"):
            yield dict(zip(head, cells, strict=True))


ROWS = list(rows())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["technique"])
def test_each_row_names_existing_files_a_test_and_a_page(row):
    files = re.findall(r"`(keras_seq/[\w/]+\.py)`", row["file"])
    assert files
    assert all((ROOT / file).is_file() for file in files)
    # That the tests exist is for tests/test_named_tests.py.
    assert re.search(r"`tests/[\w/]+\.py::test_\w+`", row["test"])
    # That links lead somewhere is for tests/test_readme.py; each row has one to a page or example.
    assert re.search(r"\]\((\.\./examples/\w+\.py|\.\./README\.md|[\w/-]+\.md)\)", row["shown in"])


def test_no_technique_comes_twice():
    names = [row["technique"] for row in ROWS]
    assert len(names) == len(set(names)) > 70
