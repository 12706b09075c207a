"""Checkpoints survive kills, full disks and flipped bits."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from run_helpers import BOTH, FILES, SHAPES, UNREADABLE, forge, save, weights

from keras_seq.run import Run, check_new, is_run
from keras_seq.storage.checkpoints import CheckpointStore
from keras_seq.text import InputError


def opening_unreadable(name):
    """Returns an `os.open` to which `UNREADABLE` has the name `name`."""
    real_open = os.open
    return lambda path, *rest, **options: real_open(
        UNREADABLE if os.path.basename(path) == name else path, *rest, **options
    )


def test_newest_and_best_checkpoints_are_kept(run):
    for step in range(1, 8):
        save(run, step)
        if step == 2:
            run.mark_best(2)
    assert run.checkpoints.steps == [2, 5, 6, 7]
    assert (run.checkpoints.best_step, run.checkpoints.latest_step) == (2, 7)
    assert run.load_weights(SHAPES)["rate"] == 2
    assert run.load_weights(SHAPES, "latest")["rate"] == 7
    run.mark_best(6)
    save(run, 8)
    assert run.checkpoints.steps == [6, 7, 8]


def test_permanent_checkpoints_are_never_deleted(run, reopened):
    pointer = run.path / "checkpoints" / "permanent"
    for step in range(1, 10):
        # A training marks a checkpoint before it saves it, and may be killed between the two.
        if step in (2, 3):
            run.make_permanent(step)
        save(run, step)
    assert run.checkpoints.steps == [2, 3, 7, 8, 9]
    assert reopened().checkpoints.permanent_steps == [2, 3]
    run.make_permanent(50)
    assert run.checkpoints.permanent_steps == [2, 3]
    # Lines that are no names of checkpoints are ignored.
    pointer.write_text("../step-00000003\nstep-00000002\nstep-3\n")
    save(run, 10)
    assert run.checkpoints.steps == [2, 8, 9, 10]


def test_checkpoint_manifest_lists_sizes_and_hashes_of_its_files(run):
    path = save(run, 1200)
    assert path == run.path / "checkpoints" / "step-00001200"
    manifest = json.loads((path / "MANIFEST.json").read_text())
    assert manifest["format"] == 1
    assert manifest["step"] == 1200
    assert manifest["files"].keys() == {
        "weights.safetensors",
        "training.safetensors",
        "state.json",
    }
    for name, recorded in manifest["files"].items():
        content = (path / name).read_bytes()
        assert recorded == {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert (path.parent / "latest").read_text() == "step-00001200\n"
    assert not [name for name in os.listdir(path.parent) if name.startswith(".tmp-")]


def test_saving_the_same_step_again_replaces_the_checkpoint(run):
    save(run, 3)
    run.save_checkpoint(3, {"weights": weights(9)}, {})
    assert run.checkpoints.steps == [3]
    assert run.load_weights(SHAPES)["rate"] == 9


def test_marking_an_unsaved_step_is_an_error(run):
    save(run, 1)
    with pytest.raises(ValueError, match=r"step 2 is not saved: saved are \[1\]"):
        run.mark_best(2)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused_at_save(run, value):
    save(run, 1)
    bad = weights(1) | {"bias": np.array([0, value, 0, 0], np.float32)}
    with pytest.raises(InputError, match="bias holds a value that is not finite"):
        run.save_checkpoint(2, {"weights": bad}, {})
    assert run.checkpoints.steps == [1]
    assert sorted(os.listdir(run.path / "checkpoints")) == ["latest", "step-00000001"]


def test_checkpoint_with_non_finite_weights_is_skipped_at_load(run, reopened, notices, tmp_path):
    save(run, 1)
    path = save(run, 2)
    bad = weights(2) | {"rate": np.array(np.nan, np.float32)}
    safetensors.numpy.save_file(bad, tmp_path / "bad")
    forge(path, "weights.safetensors", (tmp_path / "bad").read_bytes())
    assert reopened().load_weights(SHAPES, "latest")["rate"] == 1
    assert "rate holds a value that is not finite" in notices[0]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99])
def test_truncated_file_is_detected_and_the_earlier_checkpoint_is_loaded(
    run, reopened, notices, name, share
):
    save(run, 1)
    path = save(run, 2) / name
    os.truncate(path, int(path.stat().st_size * share))
    loaded = reopened().load_checkpoint(BOTH)
    assert loaded.step == loaded.tensors["weights"]["rate"] == 1
    assert "step-00000002: damaged: " in notices[0]
    assert name in notices[0]
    assert "step-00000001: read instead" in notices[1]


def test_damaged_checkpoint_warns_when_no_notice_callback_is_given(run):
    save(run, 1)
    (save(run, 2) / "state.json").unlink()
    with pytest.warns(UserWarning, match=r"state\.json is missing|read instead"):
        Run.open(run.path).load_checkpoint(BOTH)


@pytest.mark.parametrize("name", FILES)
def test_flipped_bit_in_a_checkpoint_file_is_detected(run, reopened, notices, name):
    save(run, 1)
    path = save(run, 2) / name
    original = path.read_bytes()
    generator = np.random.default_rng(0)
    for position in generator.integers(0, len(original), 20):
        content = bytearray(original)
        content[position] ^= 1 << int(generator.integers(8))
        path.write_bytes(content)
        try:
            loaded = reopened().load_checkpoint(BOTH)
        except InputError as error:
            # The flipped bit raised the format number.
            assert name == "MANIFEST.json" and "newer keras-seq" in str(error)
            continue
        # Only a flip in the white space of the manifest is harmless.
        assert loaded.step == 1 or (
            name == "MANIFEST.json" and loaded.tensors["weights"]["rate"] == 2
        )


@pytest.mark.parametrize("name", FILES)
def test_deleted_checkpoint_file_is_detected(run, reopened, notices, name):
    save(run, 1)
    (save(run, 2) / name).unlink()
    assert reopened().load_checkpoint(BOTH).step == 1
    assert f"{name} is missing" in notices[0]


def test_missing_or_invalid_latest_pointer_does_not_prevent_loading(run, reopened):
    save(run, 1)
    save(run, 2)
    pointer = run.path / "checkpoints" / "latest"
    for content in (None, b"", b"step-00000009\n", b"../../etc\n", b"\xff" * 1000):
        pointer.unlink()
        if content is not None:
            pointer.write_bytes(content)
        assert reopened().load_checkpoint(BOTH).step == 2
        pointer.write_bytes(b"")
    save(run, 3)
    assert pointer.read_text() == "step-00000003\n"


def test_missing_or_incomplete_checkpoints_raise_input_error(run, reopened):
    with pytest.raises(InputError, match="the training has not saved one yet"):
        reopened().load_weights(SHAPES)
    with pytest.raises(InputError, match="the training has not saved one yet"):
        reopened().require_weights()
    (save(run, 1) / "MANIFEST.json").unlink()
    with pytest.raises(InputError, match="no undamaged checkpoint.*MANIFEST.json is missing"):
        reopened().load_weights(SHAPES)


def test_checkpoint_of_a_newer_format_is_refused_instead_of_skipped(run, reopened):
    save(run, 1)
    path = save(run, 2) / "MANIFEST.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    with pytest.raises(InputError, match="format 2 of a newer keras-seq, expected 1: upgrade"):
        reopened().load_checkpoint(BOTH)


@pytest.mark.parametrize(
    "debris", [".tmp-step-00000002", ".tmp-old-step-00000001", ".tmp-latest", ".tmp-best"]
)
def test_leftovers_of_a_killed_save_are_ignored_and_removed_by_next_save(run, reopened, debris):
    path = save(run, 1)
    left = path.parent / debris
    if "step" in debris:
        shutil.copytree(path, left)
        (left / "MANIFEST.json").unlink()
    else:
        left.write_text("step-0000")
    again = reopened()
    assert again.checkpoints.steps == [1]
    assert again.load_checkpoint(BOTH).step == 1
    # A reader must not delete files that another process may still be writing.
    assert left.exists()
    save(again, 2)
    assert not left.exists()


def killed_saves(*arguments):
    script = Path(__file__).parents[1] / "faults" / "killed_saves.py"
    result = subprocess.run(
        [sys.executable, str(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(script.parents[2])},
    )
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is of POSIX")
def test_kills_at_any_moment_lose_at_most_the_save_under_way(tmp_path):
    """Forty processes that do nothing but save."""
    kills = killed_saves("random", 40, tmp_path)
    assert len(kills) == 40
    for kill in kills:
        assert kill["killed"] and kill["notices"] == []
        assert kill["done"] <= kill["best"] <= kill["latest"] <= kill["done"] + 1
    # Some processes were killed while writing.
    assert sum(kill["writing"] for kill in kills) >= 5


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is of POSIX")
def test_kill_before_any_line_of_a_save_leaves_complete_checkpoints(tmp_path):
    """Kills between two files, between rename and pointer update, and while deleting an old one."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        said = killed_saves("lines", folder)
    kills, after = said[::2], said[1::2]
    assert len(kills) > 200
    assert [kill["killed"] for kill in kills] == [True] * (len(kills) - 1) + [False]
    assert kills[-1]["ended_well"]
    # The old checkpoint is read until the new one is complete. The step never decreases.
    for which, before in (("latest", 3), ("best", 1)):
        found = [kill[which] for kill in kills]
        assert found == sorted(found) and set(found) == {before, 4}
    assert [kill for kill in kills if kill["notices"]] == []
    # Many died with half a checkpoint on disk, and many while deleting an old checkpoint.
    assert sum(kill["writing"] for kill in kills) > 50
    assert sum(kill["old"] for kill in kills) > 20
    for line in after:
        assert line["left"] == []
        assert set(line["steps"]) - {1} in ({3, 5}, {4, 5})


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_earlier_checkpoint_is_kept_when_the_disk_is_full(run, monkeypatch):
    save(run, 1)
    real_open = open

    def open_full(path, mode="r", **options):
        # The device that accepts no bytes, under the name of the second file.
        if "training.safetensors" in str(path) and "x" in mode:
            return real_open("/dev/full", "wb")
        return real_open(path, mode, **options)

    monkeypatch.setattr("builtins.open", open_full)
    with pytest.raises(OSError, match="not saved: no space left.*; the last one saved is step 1"):
        save(run, 2)
    monkeypatch.undo()
    assert run.checkpoints.steps == [1]
    assert run.load_checkpoint(BOTH).step == 1
    assert sorted(os.listdir(run.path / "checkpoints")) == ["latest", "step-00000001"]


@pytest.mark.skipif(not UNREADABLE.exists(), reason="needs a file that cannot be read")
def test_best_checkpoint_is_not_deleted_when_its_pointer_cannot_be_read(run, monkeypatch):
    save(run, 1)
    run.mark_best(1)
    for step in range(2, 5):
        save(run, step)
    monkeypatch.setattr("os.open", opening_unreadable("best"))
    with pytest.raises(InputError, match="best: input/output error"):
        save(run, 5)
    with pytest.raises(InputError, match="best: input/output error"):
        run.load_checkpoint(BOTH, "best")
    monkeypatch.undo()
    assert run.load_checkpoint(BOTH, "best").step == 1


@pytest.mark.skipif(not UNREADABLE.exists(), reason="needs a file that cannot be read")
def test_run_on_a_failing_disk_is_still_a_run(run, monkeypatch):
    assert is_run(run.path) and not is_run(run.path / "checkpoints")
    monkeypatch.setattr("os.open", opening_unreadable("settings.toml"))
    for check in (is_run, check_new):
        with pytest.raises(InputError, match="settings.toml: input/output error"):
            check(run.path)


def test_store_resolves_names_of_checkpoints_and_run_remembers_the_loaded_step(run):
    store = CheckpointStore(run.path / "checkpoints")
    with pytest.raises(InputError, match="the training has not saved one yet"):
        store.resolve()
    for step in (1, 2, 3):
        save(run, step)
    assert (store.resolve(), store.resolve("latest"), store.resolve("2")) == (3, 3, 2)
    store.mark_best(1)
    assert store.resolve() == 1
    with pytest.raises(InputError, match="received checkpoint '7', expected best, latest or a st"):
        store.resolve(7)
    assert run.loaded_step is None
    assert run.load_weights(SHAPES, 2)["rate"] == 2
    assert run.loaded_step == 2
