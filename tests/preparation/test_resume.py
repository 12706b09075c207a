"""Resuming a run directory, up to the point where Keras is imported."""

import fcntl
import json
import os
import subprocess
import sys

import pytest
from preparation.lines import LINES

from keras_seq.preparation import check_directory, find_run, open_or_prepare
from keras_seq.preparation.record import known_counts
from keras_seq.run import Run
from keras_seq.settings import load_settings
from keras_seq.text import InputError


@pytest.fixture
def prepared(settings, tmp_path):
    run = open_or_prepare(settings, tmp_path / "run")
    run.unlock()
    return run


def test_prepared_run_is_reopened_without_rewriting_files(settings, prepared):
    before = {path: path.stat().st_mtime_ns for path in prepared.path.rglob("*")}
    run = open_or_prepare(settings, prepared.path)
    # The vocabulary is smaller than requested, which does not count as a changed setting.
    assert run.settings.tokenizer.size < settings.tokenizer.size
    assert {path: path.stat().st_mtime_ns for path in prepared.path.rglob("*")} == before


def test_resume_option_errors_name_the_cause(settings, prepared, tmp_path):
    with pytest.raises(InputError, match="has a run already: name another, or use --overwrite"):
        open_or_prepare(settings, prepared.path, resume="never")
    with pytest.raises(
        InputError, match="no checkpoint to resume from, which --resume require needs"
    ):
        open_or_prepare(settings, prepared.path, resume="require")
    with pytest.raises(InputError, match="no run to resume, which --resume require needs"):
        open_or_prepare(settings, tmp_path / "absent", resume="require")
    with pytest.raises(InputError, match="exclude each other"):
        check_directory(prepared.path, resume="require", overwrite=True)
    with pytest.raises(ValueError, match="resume must be one of"):
        check_directory(prepared.path, resume="always")


@pytest.mark.parametrize("lacking", ["data/prepared.json", "data", "tokenizer", "all"])
def test_interrupted_preparation_is_repeated(settings, prepared, lacking):
    for name in ("data/prepared.json", lacking):
        if lacking == "all":
            # As if the process was killed while it wrote the first file.
            subprocess.run(["rm", "-r", *prepared.path.iterdir()], check=True)
            (prepared.path / ".tmp-settings.toml-0123456789abcdef").write_text("# keras")
            break
        subprocess.run(["rm", "-rf", prepared.path / name], check=True)
    notices = []
    run = open_or_prepare(settings, prepared.path, notice=notices.append)
    assert run.read_preparation() is not None
    assert any("is repeated" in line for line in notices) == (lacking != "all")


def test_missing_preparation_record_does_not_delete_checkpoints(settings, prepared):
    prepared.save_checkpoint(1, {"weights": {}}, {})
    (prepared.path / "checkpoints/step-00000001/weights.safetensors").write_bytes(b"0" * 10**8)
    (prepared.path / "data/prepared.json").unlink()
    with pytest.raises(InputError, match="has checkpoints, but no record of its text"):
        open_or_prepare(settings, prepared.path)
    assert prepared.checkpoints.steps == [1]


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 0}', '{"format": 1}', "[" * 10**5])
def test_invalid_preparation_record_raises_input_error(settings, prepared, content):
    (prepared.path / "data/prepared.json").write_text(content)
    with pytest.raises(InputError, match=r"not valid JSON|JSON object|another version|format 0"):
        open_or_prepare(settings, prepared.path)


def test_known_counts_are_valid_only_while_the_text_is_untouched(settings, prepared, tmp_path):
    assert known_counts(find_run(prepared.path), settings.data)[:2] == (60, 60)
    assert known_counts(find_run(tmp_path / "absent"), settings.data) is None
    os.utime(tmp_path / "pairs.tsv")
    assert known_counts(find_run(prepared.path), settings.data) is None
    # The file has a new timestamp, but the same content.
    open_or_prepare(settings, prepared.path)


def test_changed_settings_are_all_listed_in_the_resume_error(settings, prepared, tmp_path):
    (tmp_path / "pairs.tsv").write_text(LINES + "a\tb\n")
    other = load_settings(
        overrides={
            "data.pairs": settings.data.pairs,
            "seed": 3,
            "model.family": "rnn",
            "training.max_steps": 5,
            "tokenizer.kind": "unigram",
        }
    )
    with pytest.raises(InputError) as error:
        open_or_prepare(other, prepared.path)
    message = str(error.value)
    assert "seed 1 -> 3; model.family transformer -> rnn" in message
    assert "more: use the original settings" in message
    assert "max_steps" not in message
    assert Run.open(prepared.path).settings == prepared.settings


def test_training_settings_may_change_only_before_the_first_checkpoint(settings, prepared):
    changes = {"training.freeze": ["encoder_*"], "training.learning_rate": 0.5}
    other = load_settings(base=settings.to_dict(), overrides=changes)
    said = []
    run = open_or_prepare(other, prepared.path, notice=said.append)
    assert run.settings.training == Run.open(prepared.path).settings.training == other.training
    assert any("setting changed: training.freeze" in line for line in said)
    run.unlock()
    run.save_checkpoint(1, {"weights": {}}, {})
    (run.path / "checkpoints/step-00000001/weights.safetensors").write_bytes(b"0" * 10**8)
    with pytest.raises(InputError, match=r"training\.freeze \['encoder_\*'\] -> none"):
        open_or_prepare(settings, prepared.path)


HOLDER = """
import sys
from keras_seq.run import Run
run = Run.open(sys.argv[1])
run.lock()
print("locked", flush=True)
sys.stdin.read()
"""


def test_run_directory_locked_by_another_process_is_refused(settings, prepared):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(prepared.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout.readline() == b"locked\n"
    for overwrite in (False, True):
        with pytest.raises(InputError, match="another training is at work there"):
            open_or_prepare(settings, prepared.path, overwrite=overwrite)
    assert prepared.read_preparation() is not None
    # The kernel releases the lock of a killed process.
    holder.kill()
    holder.wait()
    holder.stdin.close()
    holder.stdout.close()
    open_or_prepare(settings, prepared.path)


def test_lock_on_a_deleted_file_does_not_count(prepared):
    lock = prepared.lock()
    (prepared.path / ".lock").unlink()
    other = Run.open(prepared.path)
    other.lock()
    with pytest.raises(InputError, match="another training"):
        Run.open(prepared.path).lock()
    lock.release()
    other.unlock()
    with open(prepared.path / ".lock") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_preparation_record_lists_text_and_corpus_files(settings, prepared):
    record = json.loads((prepared.path / "data/prepared.json").read_text())
    assert record["text"]["pairs"]["size"] == len(LINES)
    assert {"data/train/corpus.json", "data/valid.source", "tokenizer/joint.model"} <= record[
        "files"
    ].keys()
