"""Atomic writes: complete or absent, and never through a link in the directory."""

import errno
import os
import stat

import pytest

from keras_seq.storage import (
    atomic_directory,
    atomic_file,
    check_writable,
    make_directory,
    open_to_append,
    remove_temporaries,
    temporary_directory,
    write_file,
)
from keras_seq.text import InputError


@pytest.fixture
def outside(tmp_path):
    """A file and a directory that no write may touch."""
    victim = tmp_path / "outside" / "victim"
    victim.parent.mkdir()
    victim.write_text("precious")
    yield victim
    assert victim.read_text() == "precious"
    assert os.listdir(victim.parent) == ["victim"]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


def test_a_written_file_has_its_content_and_the_permissions_of_the_umask(folder):
    (folder / "plain").touch()
    write_file(folder / "a", b"old")
    write_file(folder / "a", b"new")
    assert (folder / "a").read_bytes() == b"new"
    assert sorted(os.listdir(folder)) == ["a", "plain"]
    modes = {stat.S_IMODE((folder / name).stat().st_mode) for name in ("a", "plain")}
    assert len(modes) == 1


def test_a_failed_write_keeps_the_old_content_and_leaves_nothing(folder):
    write_file(folder / "a", b"old")
    with pytest.raises(RuntimeError, match="in the middle"), atomic_file(folder / "a") as stream:
        stream.write(b"new")
        raise RuntimeError("in the middle")
    assert (folder / "a").read_bytes() == b"old"
    assert os.listdir(folder) == ["a"]


def test_readers_see_the_old_content_until_the_block_ends(folder):
    write_file(folder / "a", b"old")
    with atomic_file(folder / "a") as stream:
        stream.write(b"new")
        stream.flush()
        assert (folder / "a").read_bytes() == b"old"
    assert (folder / "a").read_bytes() == b"new"


def test_a_link_at_the_destination_is_replaced_and_not_followed(folder, outside):
    (folder / "a").symlink_to(outside)
    write_file(folder / "a", b"new")
    assert not (folder / "a").is_symlink()
    assert (folder / "a").read_bytes() == b"new"


def test_no_predictable_temporary_name_is_written_through(folder, outside, monkeypatch):
    (folder / ".tmp-a").symlink_to(outside)
    (folder / ".tmp-probe").symlink_to(outside)
    write_file(folder / "a", b"new")
    check_writable(folder)
    # A guessed name raises an error, because a temporary file must not exist beforehand.
    monkeypatch.setattr("secrets.token_hex", lambda size: "0")
    (folder / ".tmp-a-0").symlink_to(outside)
    (folder / ".tmp-probe-0").symlink_to(outside)
    with pytest.raises(FileExistsError):
        write_file(folder / "a", b"newer")
    with pytest.raises(InputError, match="cannot be written: file exists"):
        check_writable(folder)
    assert (folder / "a").read_bytes() == b"new"


@pytest.mark.parametrize("kind", ["pipe", "link to a device"])
def test_a_device_or_pipe_is_never_replaced_by_a_file(folder, kind):
    path = folder / "output"
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/null")
    with pytest.raises(InputError, match="output: a pipe or a device"):
        write_file(path, b"content")
    assert os.listdir(folder) == ["output"]
    assert not stat.S_ISREG(path.stat().st_mode)


def test_a_long_name_has_a_temporary_name_that_the_file_system_takes(folder):
    name = "ä" * 125
    write_file(folder / name, b"content")
    assert os.listdir(folder) == [name]


def test_a_directory_appears_with_all_its_files_or_not_at_all(folder):
    with atomic_directory(folder / "above" / "a") as temporary:
        (temporary / "inner").mkdir()
        (temporary / "inner" / "file").write_text("content")
        assert not (folder / "above" / "a").exists()
    assert (folder / "above" / "a" / "inner" / "file").read_text() == "content"
    with pytest.raises(RuntimeError), atomic_directory(folder / "b") as temporary:
        (temporary / "file").touch()
        raise RuntimeError
    assert os.listdir(folder) == ["above"]


def test_an_atomic_directory_never_takes_the_place_of_content_or_of_a_link(folder, outside):
    (folder / "link").symlink_to(outside.parent)
    (folder / "empty").mkdir()
    (folder / "full").mkdir()
    (folder / "full" / "file").touch()
    for name in ("link", "full"):
        with pytest.raises(InputError, match="exists already"), atomic_directory(folder / name):
            pass
    with atomic_directory(folder / "empty") as temporary:
        (temporary / "file").touch()
    assert os.listdir(folder / "empty") == ["file"]


@pytest.mark.skipif(os.name != "posix", reason="locks on directories")
def test_a_directory_whose_name_cannot_be_flushed_is_removed(folder, monkeypatch):
    def fail(path):
        if path == folder:
            raise OSError(errno.EIO, "input/output error")

    def write():
        with atomic_directory(folder / "new") as temporary:
            (temporary / "file").write_text("whole")

    with monkeypatch.context() as patch:
        patch.setattr("keras_seq.storage.atomic.sync_directory", fail)
        with pytest.raises(OSError):
            write()
    assert os.listdir(folder) == []
    write()
    assert (folder / "new" / "file").read_text() == "whole"


def test_temporary_directories_of_the_dead_are_deleted_and_those_of_the_living_kept(folder):
    with temporary_directory(folder, "a") as living:
        (folder / ".tmp-a-dead").mkdir()
        (folder / ".tmp-a-dead" / "file").touch()
        with temporary_directory(folder, "a") as other:
            assert {path.name for path in folder.iterdir()} == {living.name, other.name}
    assert os.listdir(folder) == []


def test_removing_temporaries_deletes_links_and_not_what_they_lead_to(folder, outside):
    (folder / ".tmp-link").symlink_to(outside.parent)
    (folder / ".tmp-file").touch()
    (folder / "kept").touch()
    remove_temporaries(folder)
    assert os.listdir(folder) == ["kept"]
    (folder / "linked").symlink_to(outside.parent)
    (outside.parent / ".tmp-not-ours").touch()
    remove_temporaries(folder / "linked")
    (outside.parent / ".tmp-not-ours").unlink()


def test_a_link_in_the_place_of_a_directory_is_refused(folder, outside):
    (folder / "link").symlink_to(outside.parent)
    with pytest.raises(InputError, match="link: a link, expected a directory"):
        make_directory(folder / "link")
    make_directory(folder / "a" / "b", parents=True)
    make_directory(folder / "a" / "b")


def test_appending_refuses_links_and_pipes(folder, outside):
    with open_to_append(folder / "log") as stream:
        stream.write(b"one\n")
    with open_to_append(folder / "log") as stream:
        stream.write(b"two\n")
    assert (folder / "log").read_bytes() == b"one\ntwo\n"
    (folder / "link").symlink_to(outside)
    os.mkfifo(folder / "pipe")
    for name, kind in (("link", "a link"), ("pipe", "a pipe")):
        with pytest.raises(InputError, match=f"{kind}, expected a regular file"):
            open_to_append(folder / name)


def test_removing_temporaries_of_some_names_leaves_those_of_others(folder):
    for name in (".tmp-a.txt-0", ".tmp-b.txt-0", ".tmp-mine", "a.txt"):
        (folder / name).touch()
    remove_temporaries(folder, ["a.txt"])
    assert sorted(os.listdir(folder)) == [".tmp-b.txt-0", ".tmp-mine", "a.txt"]
    remove_temporaries(folder, [])
    assert len(os.listdir(folder)) == 3
