"""benchmarks/public/compare.py trains keras-seq, and the peer that is installed here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[1]
PUBLIC = ROOT / "benchmarks" / "public"
# One peer answers, and one system cannot predict because its run is missing.
FAILURES = """
import pathlib, sys

import compare
import systems


def predict(system, task, data, work, part, seed, smoke):
    if system == systems.OURS:
        systems._predict(task, work, ["a | b"], pathlib.Path("predicted.txt"))
    if system == "logistic regression":
        raise compare.SkippedError("not installed")
    work.mkdir(parents=True)
    return systems.Predictions([], 60.0, 12.5)


systems.predict = predict
sys.exit(compare.main())
"""


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
    names = ["trec, accuracy", "pos, accuracy", "g2p ice-yoyodyne, exact", "digits, exact"]
    ours = [task for task, system in scores if system == "keras-seq"]
    assert ours == [*names, "enja, chrF"], result.stderr
    # Models of a few updates know little, so only the range is certain.
    play = {name: float(score) for (task, name), score in scores.items() if "shakesp" in task}
    assert [*play] == ["keras-seq, blocks of 128", "keras-seq, blocks of 64", "torch GPT"]
    assert all(0.5 < nats < 10 for nats in play.values())
    # The label is in the number of each training text.
    assert float(scores["trec, accuracy", "logistic regression"]) == 100
    assert 0 <= float(scores["enja, chrF", "torch Transformer"]) < 100
    # The peers whose environment is not the one of the tests say so.
    for peer in ("OpenNMT-tf Transformer", "yoyodyne attentive LSTM"):
        assert f"{peer}: skipped: " in result.stderr
    assert (tmp_path / "scores.svg").stat().st_size > 1000


def test_a_failed_system_is_in_the_table_and_the_others_continue(tmp_path):
    options = ["--smoke", "--task=trec", "--seeds=1", "--work", tmp_path]
    result = subprocess.run(
        [sys.executable, "-c", FAILURES, *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (PUBLIC, ROOT)))},
    )
    assert result.returncode == 1, result.stderr
    rows = [line.strip("| ").split(" | ") for line in result.stdout.splitlines() if "trec" in line]
    found = {system.strip(): score.strip() for _, system, score, *_ in rows}
    assert found.keys() == {"keras-seq", "fastText"} and found["fastText"] == "12.5"
    assert found["keras-seq"].startswith("failed: keras-seq classify failed: ")
    assert "trec-keras-seq-1/run: " in found["keras-seq"]
    assert "trec, logistic regression: skipped: not installed" in result.stderr
    assert "Traceback" not in result.stderr
