"""Finding the versions of a model in a directory, and the errors if there are none."""

import os

import pytest

from keras_seq.serving.http.versions import (
    check_version,
    find_versions,
    fingerprint,
    newest_version,
)
from keras_seq.text import InputError


def make(base, name):
    (base / name / "variables").mkdir(parents=True)
    (base / name / "saved_model.pb").write_bytes(b"graph")
    (base / name / "variables" / "variables.index").write_bytes(b"index")
    return base / name


def test_only_directories_named_by_an_integer_are_versions(tmp_path):
    for name in ("1", "2", "10", "00000123", ".tmp-11", "v3", "-4", "5.0", "serving", "9" * 30):
        make(tmp_path, name)
    (tmp_path / "200").write_text("a file")
    assert list(find_versions(tmp_path)) == [123, 10, 2, 1]
    assert newest_version(tmp_path) == (123, tmp_path / "00000123")


def test_a_link_to_a_directory_is_a_version(tmp_path):
    make(tmp_path, "elsewhere")
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "7").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert newest_version(tmp_path / "base") == (7, tmp_path / "base" / "7")


def test_directory_without_a_version_raises_an_explanatory_error(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    make(tmp_path / "one", "1")
    (tmp_path / "hollow" / "3").mkdir(parents=True)
    for base, words in (
        (tmp_path / "absent", "absent: no such directory; keras-seq export"),
        (tmp_path / "file", "file: not a directory of versions but a file"),
        (tmp_path / "empty", "empty: no version there"),
        (tmp_path / "one" / "1", "1: this is one version; name the directory above it"),
        (tmp_path / "hollow", "3: not a SavedModel: it has no saved_model.pb"),
    ):
        with pytest.raises(InputError) as caught:
            newest_version(base)
        assert words in str(caught.value)
    with pytest.raises(InputError, match="no such file or directory"):
        find_versions(tmp_path / "absent")


def test_a_fingerprint_changes_with_any_file(tmp_path):
    path = make(tmp_path, "1")
    check_version(path)
    seen = {fingerprint(path)}
    assert fingerprint(path) in seen
    (path / "variables" / "variables.index").write_bytes(b"longer index")
    seen.add(fingerprint(path))
    os.utime(path / "saved_model.pb", ns=(1, 1))
    seen.add(fingerprint(path))
    (path / "variables" / "variables.data-00000-of-00001").write_bytes(b"")
    seen.add(fingerprint(path))
    assert len(seen) == 4
    fingerprint(tmp_path / "absent")
