"""docs/robustness.md: every row names tests that exist, and every fault has a row."""

import re
import subprocess
import sys
from pathlib import Path

import test_backends

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "robustness.md").read_text(encoding="utf-8")
NAME = re.compile(r"`(tests/[\w/]+\.py)::(\w+)(\[[\w-]+\])?`")
FAULTS = 26


def rows():
    """The cells of each row of each table, with those of the table's head."""
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


def test_every_row_names_tests_that_exist():
    found = list(rows())
    assert len(found) > 90
    for row in found:
        named = NAME.findall(row["test"])
        assert named, row
        for path, name, _ in named:
            assert f"\ndef {name}(" in (ROOT / path).read_text("utf-8"), f"{path}::{name}"
    # None is named in another way, which would not be looked for.
    assert TEXT.count("::") == sum(len(NAME.findall(row["test"])) for row in found)


def test_every_fault_has_a_row():
    numbers = [row["no."] for row in rows() if "no." in row]
    answered = {int(number) for cell in numbers for number in cell.split(", ")}
    assert answered == set(range(1, FAULTS + 1))
    legend = TEXT[: TEXT.index("| no. |")]
    assert set(map(int, re.findall(r"\b(\d+) [a-zA-Z]", legend))) >= answered


def test_cases_that_are_named_exist():
    named = {"".join(parts) for parts in re.findall(r"`(tests/[\w/]+\.py::\w+\[[\w-]+\])`", TEXT)}
    assert len(named) >= 5
    files = sorted({name.split("::")[0] for name in named})
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
    assert named - set(result.stdout.split("\n")) == set()


def test_rows_that_name_both_backends_are_tested_on_both():
    """By the list of what is run on JAX as well, or because the test itself chooses backends."""
    again = {entry.split("[")[0] for entry in test_backends.TESTS}
    for row in rows():
        if "TF, JAX" not in row["how"]:
            continue
        for path, name, _ in NAME.findall(row["test"]):
            listed = {f"{path}::{name}", path, *map(str, Path(path).parents)} & again
            text = (ROOT / path).read_text("utf-8")
            assert listed or "jax" in text.lower() or "BACKENDS" in text, f"{path}::{name}"
