"""Damaged and hostile files are read or refused, never an internal error.

`python tests/fuzzing/fuzz.py --minutes 60` tries more files, guided by coverage where Atheris
is installed. `corpus/TARGET/` has the files that once failed.
"""

import asyncio
import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest
from fuzzing import command_target, http_target, run_target
from fuzzing.fuzz import fuzz_in_process, fuzz_target
from fuzzing.targets import TARGETS, Target
from http_in_process import PATH

FUZZ = Path(__file__).parent / "fuzz.py"
CORPUS = Path(__file__).parent / "corpus"
# The targets differ in speed: each takes about two seconds.
EXAMPLES = {"saved_models": 150, "tokenizers": 200, "run_directories": 100, "commands": 100}


@pytest.mark.parametrize("name", TARGETS)
def test_a_damaged_file_leads_to_no_internal_error(name, tmp_path):
    target = TARGETS[name](tmp_path)
    for path in sorted((CORPUS / name).glob("*")):
        target.check(path.read_bytes())

    @hypothesis.settings(
        max_examples=EXAMPLES.get(name, 250),
        deadline=None,
        # The same files in every run; fuzz.py draws new ones.
        derandomize=True,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(target.files)
    def check(content):
        target.check(content)

    check()


def test_undamaged_runs_are_read_without_an_error(tmp_path, monkeypatch):
    @contextmanager
    def not_refusing(kind):
        yield

    monkeypatch.setattr(run_target, "refusing", not_refusing)
    for task in ("translate", "classify"):
        run_target.RunFiles(tmp_path / task, task).read()


@pytest.mark.parametrize("name", command_target.COMMANDS)
def test_commands_read_undamaged_files(name, tmp_path):
    arguments, files, _ = command_target.COMMANDS[name]
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    code, printed = command_target.run(tmp_path, arguments.split())
    # A training has no text, which is found after its settings are read.
    assert code == (2 if name == "train" else 0), printed
    assert "no text to train on" in printed or name != "train"


def test_damaged_results_of_a_search_are_refused(tmp_path):
    command = command_target.tune_command(tmp_path)
    path = tmp_path / "search" / "tuning.json"
    stored = json.loads(path.read_text())
    rate = {"training.learning_rate": "1e-3"}
    expected = "keras-seq: search/tuning.json: the results are damaged: copy the file again, or "
    for results in (
        *(5, "x", [5], [{"values": rate}], [{"values": rate, "outcomes": []}]),
        [{"values": 5, "outcomes": [{"state": "trained", "minutes": 1.0, "updates": 1}]}],
        [{"values": rate, "outcomes": [{"metric": ["x"]}]}],
    ):
        path.write_text(json.dumps(stored | {"results": results}))
        with command_target.without_slow_parts():
            code, printed = command_target.run(tmp_path, command.arguments.split())
        assert code == 2 and expected in printed, results


def test_internal_error_of_a_command_is_a_finding(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise KeyError("defect")

    monkeypatch.setattr("keras_seq.vectors.WordVectors.load", broken)
    check = command_target.check_commands(command_target.COMMANDS, tmp_path / "files")
    with pytest.raises(AssertionError, match="internal error: KeyError"):
        check(b"nearest\nvectors.txt\n" + command_target.VECTORS)


def test_valid_requests_are_answered():
    for document in http_target.VALID:
        request = http_target.request_of("POST", PATH, [], json.dumps(document).encode(), 2)
        start, *parts = asyncio.run(http_target.answer(json.loads(request)))
        assert start["status"] == 200, (document, parts)


def test_failed_checks_are_recorded_with_their_files(tmp_path, monkeypatch):
    def check(content):
        assert b"\x00" not in content

    target = Target(st.binary(max_size=4), check)
    monkeypatch.setitem(TARGETS, "text_files", lambda folder: target)
    # Without Atheris, which would end this process.
    monkeypatch.setitem(sys.modules, "atheris", None)
    fuzz_target("text_files", 1.0, tmp_path)
    executions, found = json.loads((tmp_path / "record.json").read_text())
    assert executions > 10
    ((what, (_, content)),) = found.items()
    assert what.startswith("AssertionError in test_fuzzing.py:")
    assert b"\x00" in bytes.fromhex(content)


def test_process_that_cannot_start_is_no_success(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", "false")
    with pytest.raises(SystemExit, match="settings: the process ended with 1 before it tried"):
        fuzz_in_process("settings", 1.0, tmp_path, tmp_path / "crashes")


@pytest.mark.process
def test_command_counts_files(tmp_path):
    command = [sys.executable, str(FUZZ), "--minutes", "0.05", "--only", "text_files"]
    done = subprocess.run(
        [*command, "--crashes", str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    name, files, *rest = done.stdout.split()
    assert name == "text_files" and int(files.replace(",", "")) > 10
    assert rest[-2:] == ["0", "findings"]
