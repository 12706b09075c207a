"""benchmarks/public/compare.py trains keras-seq, and the peer that is installed here."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.weekly
def test_public_benchmark_runs_in_smoke_mode(tmp_path):
    script = ROOT / "benchmarks" / "public" / "compare.py"
    options = ["--smoke", "--seeds", "1", "--work", tmp_path, "--picture", tmp_path / "scores.svg"]
    result = subprocess.run(
        [sys.executable, script, *options], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert result.returncode == 0, result.stderr
    rows = [line.strip("| ").split(" | ") for line in result.stdout.splitlines() if "|" in line][2:]
    scores = {(task.strip(), system.strip()): score for task, system, score, *_ in rows}
    ours = [task for task, system in scores if system == "keras-seq"]
    assert ours == ["trec, accuracy", "enja, chrF"], result.stderr
    # The label is in the number of each training text.
    assert float(scores["trec, accuracy", "logistic regression"]) == 100
    assert 0 <= float(scores["enja, chrF", "torch Transformer"]) < 100
    # The peers whose environment is not the one of the tests say so.
    assert "OpenNMT-tf Transformer: skipped: " in result.stderr
    assert (tmp_path / "scores.svg").stat().st_size > 1000
