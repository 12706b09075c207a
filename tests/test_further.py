"""Which cases a run of the tests has, and which only one that asks for them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILE = "tests/training/test_guided_alignment.py"
TEST = f"{FILE}::test_attention_goes_where_it_is_told"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([FILE], ["transformer"]),
        ([FILE, "--further"], ["transformer", "rnn"]),
    ],
)
def test_further_cases_run_where_they_are_asked_for(arguments, expected):
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = [line for line in result.stdout.split("\n") if line.startswith(TEST)]
    assert found == [f"{TEST}[{case}]" for case in expected]
