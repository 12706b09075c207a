"""Directories of a stranger: token ids, records and validation text that do not fit the run."""

import json
import os
import shutil

import numpy as np
import pytest

from keras_seq.preparation import open_or_prepare
from keras_seq.preparation.files import PairCounts
from keras_seq.preparation.record import make_record
from keras_seq.settings import load_settings
from keras_seq.text import InputError


@pytest.fixture
def base(settings, tmp_path):
    run = open_or_prepare(settings, tmp_path / "base")
    run.unlock()
    return run


@pytest.fixture
def sharing(base):
    return load_settings(overrides={"data.prepared": str(base.path)})


def record_again(run):
    """Writes a record in which everything is right, as whoever made the directory could."""
    files = make_record(run, run.settings.data, run.settings.tokenizer, PairCounts(1, 1))["files"]
    run.write_preparation({**run.read_preparation(), "files": files})


def change_ids(run, part, side, value):
    path = run.path / "data" / part / f"shard-00000.{side}.ids"
    ids = np.fromfile(path, "<u2")
    ids[-1] = value
    path.write_bytes(ids.tobytes())
    record_again(run)


@pytest.mark.parametrize("part", ["train", "valid"])
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("value", [0, 65_535])
def test_token_ids_beyond_the_vocabulary_are_refused(
    settings, base, sharing, tmp_path, part, side, value
):
    change_ids(base, part, side, value)
    message = rf"{part}/shard-00000.{side}.ids: the token id {value:,}, expected ids from 1 to"
    with pytest.raises(InputError, match=message):
        open_or_prepare(sharing, tmp_path / "new")
    assert not (tmp_path / "new" / "data").exists()
    with pytest.raises(InputError, match=message):
        open_or_prepare(settings, base.path)


@pytest.mark.parametrize("part", ["train", "valid"])
def test_corpus_without_pairs_is_refused(settings, base, part):
    folder = base.path / "data" / part
    index = json.loads((folder / "corpus.json").read_text())
    index["shards"], index["counts"]["kept"] = [], 0
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "corpus.json").write_text(json.dumps(index))
    record_again(base)
    with pytest.raises(InputError, match=f"{part}: no pairs, expected at least one"):
        open_or_prepare(settings, base.path)


def test_corpus_with_longer_sequences_than_the_settings_say_is_refused(base, settings):
    """Whatever its index says."""
    base.update_settings(
        base.settings.model_copy(
            update={"data": base.settings.data.model_copy(update={"max_source_length": 3})}
        )
    )
    update = {"data": settings.data.model_copy(update={"max_source_length": 3})}
    with pytest.raises(InputError, match=r"train: a source of \d+ tokens, expected at most 3 as"):
        open_or_prepare(settings.model_copy(update=update), base.path)


@pytest.mark.parametrize("name", ["data/valid/corpus.json", "data/train/shard-00000.source.ids"])
def test_changed_file_of_a_prepared_directory_is_not_shared(base, sharing, tmp_path, name):
    content = bytearray((base.path / name).read_bytes())
    content[-2] ^= 1
    (base.path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}: changed since it was prepared: prepare the te"):
        open_or_prepare(sharing, tmp_path / "new")
    assert not (tmp_path / "new" / "data").exists()


@pytest.mark.parametrize("name", ["x", "more/x"])
@pytest.mark.parametrize("recorded", [False, True])
def test_foreign_file_among_the_validation_text_is_not_copied(
    base, sharing, tmp_path, name, recorded
):
    """As B5 of a sparse file of 20 GB, whose copy fills the disk."""
    path = base.path / "data" / "valid" / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.truncate(path, 1 << 22)
    if recorded:
        record_again(base)
    with pytest.raises(InputError, match=f"{name}: changed|x: a sparse file|more: expected"):
        open_or_prepare(sharing, tmp_path / "new")
    assert not (tmp_path / "new" / "data").exists()


def test_validation_text_that_does_not_fit_on_the_disk_is_not_copied(
    base, sharing, tmp_path, monkeypatch
):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=100))
    with pytest.raises(InputError, match=r"new: the validation text needs 0.0 MB, but the disk ha"):
        open_or_prepare(sharing, tmp_path / "new")


@pytest.mark.parametrize(
    "path",
    ["\x1b]0;owned\x07" * 10, "x" * 10**6, ["deep"] * 10**5, 9 * 10**4200, None],
    ids=["control", "long", "list", "number", "none"],
)
@pytest.mark.parametrize("count", [1, 2])
def test_recorded_paths_are_shown_briefly(settings, base, path, count):
    record = base.read_preparation()
    entry = {"path": path, "size": path, "sha256": path}
    record["text"] = {"pairs": entry, "valid_pairs": [entry] * count}
    base.write_preparation(record)
    with pytest.raises(InputError, match="was started with different settings") as error:
        open_or_prepare(settings, base.path)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 1200


def test_recorded_names_of_files_are_shown_briefly(settings, base):
    record = base.read_preparation()
    record["files"]["\x1b[2J" * 10**5] = {}
    base.write_preparation(record)
    with pytest.raises(InputError, match="changed since the training began") as error:
        open_or_prepare(settings, base.path)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 800
