"""The tests that the documentation names exist, and pytest collects them."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAME = re.compile(r"`(tests/[\w/]+\.py::\w+)(\[[^`\]]+\])?`")


def collected_cases(marker, files):
    """Returns the ids of all tests that a marker selects."""
    options = ["--collect-only", "-q", "-p", "no:cacheprovider", "-m", marker]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:]
    return [line for line in result.stdout.split("\n") if line.startswith("tests/")]


def collected(marker, files):
    """Returns the ids of all tests that a marker selects, with and without their parameters."""
    cases = set(collected_cases(marker, files))
    return cases | {case.split("[")[0] for case in cases}


@pytest.fixture(scope="module")
def every_test():
    """All tests of the files that the pages name; pytest fails if a file is missing."""
    text = "".join(page.read_text("utf-8") for page in PAGES)
    return collected("", sorted({name.split("::")[0] for name, _ in NAME.findall(text)}))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_is_collected(page, every_test):
    text = page.read_text("utf-8")
    named = {"".join(parts) for parts in NAME.findall(text)}
    assert named - every_test == set()
    # `NAME` matches every test that the page mentions.
    assert text.count(".py::") == len(NAME.findall(text)) + text.count("`file.py::test`")


def test_counts_of_hostile_input_are_those_of_the_test_files():
    text = (ROOT / "docs" / "robustness.md").read_text("utf-8")
    _, _, after = text.partition("| class of input | test cases | held | tests |\n")
    table = [row.strip("|").split("|") for row in after.split("\n\n")[0].split("\n")[1:]]
    promised = {what.strip(): (int(tried), int(held)) for what, tried, held, _ in table}
    files = {what.strip(): re.findall(r"`(tests/[\w/]+\.py)`", named) for what, *_, named in table}
    cases = collected_cases("", sorted({name for names in files.values() for name in names}))
    counts = Counter(case.split("::")[0] for case in cases)
    found = {what: 2 * (sum(counts[name] for name in names),) for what, names in files.items()}
    assert len(table) >= 14 and all(files.values())
    assert promised == found


@pytest.mark.weekly
def test_rows_that_promise_both_backends_name_tests_that_run_on_jax(every_test):
    """A test runs on JAX by the marker `jax` or by starting a process on JAX."""
    on_jax = collected("jax", ["tests"])
    wrong = []
    for page in ("decoding.md", "robustness.md"):
        for line in (ROOT / "docs" / page).read_text("utf-8").split("\n"):
            if not line.startswith("| ") or "TF, JAX" not in line:
                continue
            for name, _ in NAME.findall(line):
                path = ROOT / name.split("::")[0]
                if name not in on_jax and "jax" not in path.read_text("utf-8").lower():
                    wrong.append(name)
    assert wrong == []
