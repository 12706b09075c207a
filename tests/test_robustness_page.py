"""docs/robustness.md names a test for every guarantee and has a row for every fault."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "robustness.md").read_text(encoding="utf-8")
FAULTS = 26


def rows():
    """Yields each row of each table as a dictionary with the table's header as keys."""
    head = None
    for line in TEXT.split("\n"):
        if not line.startswith("|"):
            head = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if head is None:
            head = cells
        elif not set(line) <= set("|-"):
            yield dict(zip(head, cells, strict=True))


def test_every_promise_has_a_test():
    found = [row for row in rows() if "guarantee" in row]
    assert len(found) > 90
    assert [row for row in found if "::" not in row["test"]] == []


def test_every_fault_has_a_row():
    numbers = [row["no."] for row in rows() if "no." in row]
    answered = {int(number) for cell in numbers for number in cell.split(", ")}
    assert answered == set(range(1, FAULTS + 1))
    legend = TEXT[: TEXT.index("| no. |")]
    assert set(map(int, re.findall(r"\b(\d+) [a-zA-Z]", legend))) >= answered
