"""Each row of docs/techniques.md names existing files, a test, and an example or page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "techniques.md"
TEXT = PAGE.read_text("utf-8")


def rows():
    """Yields each row of each table as a dictionary with the table's header as keys."""
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
    # tests/test_named_tests.py checks that the tests exist.
    assert re.search(r"`tests/[\w/]+\.py::test_\w+`", row["test"])
    # tests/test_links.py checks that links work; each row links to a page or an example.
    assert re.search(r"\]\((\.\./examples/\w+\.py|\.\./README\.md|[\w/-]+\.md)\)", row["shown in"])


def test_no_technique_comes_twice():
    names = [row["technique"] for row in ROWS]
    assert len(names) == len(set(names)) > 70
