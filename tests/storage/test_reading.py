"""Reads of untrusted files: no links, pipes or devices, and bounds on size."""

import hashlib
import os

import pytest
from run_helpers import UNREADABLE

from keras_seq.storage import (
    check_tree,
    hash_file,
    open_regular,
    read_file,
    read_json,
    size_on_disk,
)
from keras_seq.text import InputError


@pytest.fixture
def entries(tmp_path):
    """One directory entry of each kind, by kind."""
    file = tmp_path / "file"
    file.write_bytes(b"content")
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "directory").mkdir()
    return {path.name: path for path in tmp_path.iterdir()}


@pytest.mark.parametrize("kind", ["link", "pipe", "device", "directory"])
@pytest.mark.parametrize(
    "read",
    [open_regular, hash_file, lambda path: read_file(path, 100), lambda path: read_json(path, 100)],
    ids=["open_regular", "hash_file", "read_file", "read_json"],
)
def test_only_regular_files_are_read(entries, kind, read):
    with pytest.raises(InputError, match="expected a regular file"):
        read(entries[kind])


def test_a_device_is_refused_by_its_own_name():
    with pytest.raises(InputError, match="/dev/zero: a device or socket, expected a regular file"):
        read_file("/dev/zero", 100)


def test_a_regular_file_is_read_up_to_the_limit(entries):
    assert read_file(entries["file"], 7) == b"content"
    with pytest.raises(InputError, match="file: 7 bytes, expected at most 6"):
        read_file(entries["file"], 6)
    with pytest.raises(InputError, match="none: no such file"):
        read_file(entries["file"].with_name("none"), 6)


def test_the_hash_of_a_file_is_that_of_hashlib_and_follows_links_only_when_asked(entries):
    expected = hashlib.sha256(b"content").hexdigest()
    assert hash_file(entries["file"]) == expected
    assert hash_file(entries["link"], follow_links=True) == expected


@pytest.mark.skipif(not UNREADABLE.exists(), reason="needs a file that cannot be read")
def test_a_failed_read_of_a_file_to_hash_names_the_file():
    with pytest.raises(OSError, match=str(UNREADABLE)):
        hash_file(UNREADABLE)


@pytest.mark.parametrize("kind", ["link", "pipe", "device"])
def test_a_tree_with_anything_but_files_and_directories_is_refused(tmp_path, entries, kind):
    tree = tmp_path / "tree" / "inner"
    tree.mkdir(parents=True)
    (tree / "file").touch()
    check_tree(tmp_path / "tree")
    check_tree(tmp_path / "absent")
    entries[kind].rename(tree / "other")
    with pytest.raises(InputError, match="tree/inner/other: a .*, expected a regular file"):
        check_tree(tmp_path / "tree")
    (tmp_path / "linked").symlink_to(tmp_path / "tree")
    with pytest.raises(InputError, match="linked: a link"):
        check_tree(tmp_path / "linked")


def test_a_sparse_file_counts_for_little_more_than_it_takes(tmp_path):
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 1 << 32)
    assert size_on_disk(path.stat()) < 1 << 20
    path.write_bytes(os.urandom(2 << 20))
    assert size_on_disk(path.stat()) == 2 << 20
