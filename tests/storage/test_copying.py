"""Copies of directories, and the name of the file that cannot be written."""

import errno
import os
import shutil

import pytest

from keras_seq.storage import copy_tree


def test_a_copy_has_all_files_and_keeps_links(tmp_path):
    (tmp_path / "a" / "deep").mkdir(parents=True)
    (tmp_path / "a" / "deep" / "file").write_bytes(b"content")
    (tmp_path / "a" / "link").symlink_to("deep/file")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "kept").write_bytes(b"older")
    copy_tree(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b" / "deep" / "file").read_bytes() == b"content"
    assert os.readlink(tmp_path / "b" / "link") == "deep/file"
    assert (tmp_path / "b" / "kept").read_bytes() == b"older"


@pytest.mark.parametrize("has_names", [False, True])
def test_the_error_of_a_full_disk_names_the_first_file(tmp_path, monkeypatch, has_names):
    (tmp_path / "a").mkdir()
    for name in ("one", "two"):
        (tmp_path / "a" / name).write_bytes(b"content")

    def full(source, target, **_):
        names = (source, None, target) if has_names else ()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *names)

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(OSError, match="No space left") as error:
        copy_tree(tmp_path / "a", tmp_path / "b")
    assert error.value.filename in {str(tmp_path / "b" / name) for name in ("one", "two")}
    assert error.value.errno == errno.ENOSPC


def test_a_missing_directory_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        copy_tree(tmp_path / "missing", tmp_path / "b")
