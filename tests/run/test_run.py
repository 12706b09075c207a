"""The run directory: creating, filling and reopening it without harm to other files."""

import json
import os

import numpy as np
import pytest
from run_helpers import SETTINGS, SHAPES, save

from keras_seq.run import Run
from keras_seq.settings import load_settings
from keras_seq.text import InputError, Tokenizer


def test_run_is_reopened_with_everything_that_was_saved(run, reopened):
    tokenizer = Tokenizer.train(["A dog runs.", "Ein Hund läuft."], size=300)
    run.save_vocabularies(tokenizer, tokenizer)
    sources = ["a\u2028b", "c\rd", "\u0085e\x0b", ""]
    run.save_valid_lines(sources, ["1", "2", "3", "4"])
    run.logs.append_metrics({"step": 1, "bleu": 1.5})
    run.logs.append_metrics({"step": 2, "text": "ä\u2028"})
    run.logs.append_samples("one")
    run.logs.append_samples("two\n")
    run.write_card("# Card\n")
    save(run, 12)
    again = reopened()
    assert again.settings == run.settings
    assert again.source_tokenizer is again.target_tokenizer
    assert again.source_tokenizer.to_bytes() == tokenizer.to_bytes()
    assert again.valid_lines() == (sources, ["1", "2", "3", "4"])
    lines = (run.path / "metrics.jsonl").read_text("utf-8").split("\n")
    assert [json.loads(line)["step"] for line in lines[:-1]] == [1, 2]
    assert (run.path / "samples.txt").read_text() == "one\ntwo\n"
    assert (run.path / "README.md").read_text() == "# Card\n"
    np.testing.assert_array_equal(again.load_weights(SHAPES)["bias"], np.full(4, 12, "float32"))
    checkpoint = again.load_checkpoint({"weights": SHAPES, "training": {"moment": ((2000,), "f4")}})
    assert checkpoint.step == 12
    assert checkpoint.state == {"step": 12}


def test_separate_source_and_target_tokenizers_are_reopened(tmp_path):
    run = Run.create(tmp_path / "two", load_settings(overrides={"tokenizer.joint": False}))
    source = Tokenizer.train(["A dog runs."], size=280)
    target = Tokenizer.train(["Ein Hund läuft."], size=280)
    run.save_vocabularies(source, target)
    again = Run.open(run.path)
    assert again.source_tokenizer.to_bytes() == source.to_bytes()
    assert again.target_tokenizer.to_bytes() == target.to_bytes()


def test_directory_with_other_files_is_never_used_or_changed(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="not empty and not a run"):
            Run.create(tmp_path, SETTINGS, overwrite=overwrite)
    (tmp_path / "settings.toml").write_text("seed = 1\n")
    with pytest.raises(InputError, match="not empty and not a run"):
        Run.create(tmp_path, SETTINGS, overwrite=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_overwriting_deletes_the_run_and_nothing_else(run):
    save(run, 1)
    (run.path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="has a run already.*--overwrite"):
        Run.create(run.path, SETTINGS)
    again = Run.create(run.path, SETTINGS, overwrite=True)
    assert again.checkpoints.latest_step is None
    assert sorted(os.listdir(run.path)) == ["notes.txt", "settings.toml"]


def test_overwriting_does_not_follow_links(run, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("keep")
    (run.path / "checkpoints").symlink_to(outside)
    Run.create(run.path, SETTINGS, overwrite=True)
    assert (outside / "file").read_text() == "keep"


def test_run_create_makes_parents_and_refuses_files(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="a file, expected a new"):
        Run.create(tmp_path / "file", SETTINGS)
    with pytest.raises(InputError, match="is a file"):
        Run.create(tmp_path / "file" / "below", SETTINGS)
    Run.create(tmp_path / "deep" / "below", SETTINGS)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere"
)
def test_a_read_only_directory_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="permission denied"):
        Run.create(tmp_path / "run", SETTINGS)
    tmp_path.chmod(0o700)


def test_opening_a_path_that_is_not_a_run_raises_input_error(tmp_path):
    with pytest.raises(InputError, match="no such run directory"):
        Run.open(tmp_path / "absent")
    with pytest.raises(InputError, match="no settings.toml"):
        Run.open(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="a file, expected a run directory"):
        Run.open(tmp_path / "file")
    # A SavedModel instead of a run.
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01")
    with pytest.raises(InputError, match="no settings.toml"):
        Run.open(tmp_path)
