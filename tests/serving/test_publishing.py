"""Publishing is atomic, even if it fails or another process reads at the same time."""

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from keras_seq.serving.publishing import (
    check_base,
    check_destination,
    publish_directory,
    publish_version,
)
from keras_seq.text import InputError

FILES = ["saved_model.pb", "variables/variables.index", "variables/variables.data", "last"]


def fill(directory: Path, marker: bytes = b"1") -> None:
    """Writes several files one after another, as an export does."""
    for name in FILES:
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_bytes(marker * 1000)


def is_whole(directory: Path) -> bool:
    contents = [(directory / name).read_bytes() for name in FILES]
    return len(set(contents)) == 1 and len(contents[0]) == 1000


def test_published_versions_are_numbered_consecutively(tmp_path):
    base = tmp_path / "served" / "ende"
    assert publish_version(base, fill) == base / "1"
    assert publish_version(base, fill) == base / "2"
    assert sorted(os.listdir(base)) == ["1", "2"]
    assert is_whole(base / "1") and is_whole(base / "2")


def test_version_numbering_ignores_names_that_are_not_versions(tmp_path):
    for name in ("serving", ".tmp-other", "7.5", "1_000", "0x10", "٤", "9" * 30, "-3"):
        (tmp_path / name).mkdir()
    assert publish_version(tmp_path, fill).name == "1"
    (tmp_path / "0041").mkdir()
    assert publish_version(tmp_path, fill).name == "42"
    # A server would mistake a file with a numeric name for a version.
    (tmp_path / "50").touch()
    assert publish_version(tmp_path, fill).name == "51"


def test_publishing_beyond_the_largest_version_raises_input_error(tmp_path):
    (tmp_path / str(2**63 - 1)).mkdir()
    with pytest.raises(InputError, match="the largest there can be"):
        publish_version(tmp_path, fill)


def test_a_version_that_appears_meanwhile_is_not_overwritten(tmp_path):
    def write(directory):
        fill(directory)
        (tmp_path / "1").mkdir()
        (tmp_path / "1" / "of others").touch()
        (tmp_path / "2").touch()

    assert publish_version(tmp_path, write) == tmp_path / "3"
    assert os.listdir(tmp_path / "1") == ["of others"]
    assert (tmp_path / "2").is_file()


def test_other_users_may_read_what_is_published(tmp_path):
    before = os.umask(0o022)
    try:
        version = publish_version(tmp_path, fill)
    finally:
        os.umask(before)
    assert version.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), InputError("a: b")])
def test_failed_publication_leaves_nothing_behind(tmp_path, error):
    def write(directory):
        fill(directory)
        raise error

    for publish in (publish_version, publish_directory):
        with pytest.raises(type(error)) as raised:
            publish(tmp_path / "a" / "b", write if publish is publish_version else make(write))
        assert raised.value is error
        assert os.listdir(tmp_path) == []
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "kept").touch()
    with pytest.raises(type(error)):
        publish_version(tmp_path / "a" / "b", write)
    assert os.listdir(tmp_path / "a") == ["kept"]


def make(write):
    def make_and_write(path):
        path.mkdir()
        write(path)

    return make_and_write


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "write", [lambda path: path.write_text("whole"), lambda path: path.mkdir()], ids=["file", "dir"]
)
def test_export_whose_name_cannot_be_flushed_is_removed(tmp_path, monkeypatch, write):
    def fail(path):
        if path == tmp_path:
            raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("keras_seq.storage.atomic.sync_directory", fail)
        with pytest.raises(InputError, match="new: cannot be written: no space left"):
            publish_directory(tmp_path / "new", write)
    assert os.listdir(tmp_path) == []
    assert publish_directory(tmp_path / "new", write).exists()


def test_full_disk_is_reported_in_one_line_and_leaves_nothing(tmp_path):
    def write(directory):
        fill(directory)
        os.symlink("/dev/full", directory / "large")
        (directory / "large").write_bytes(bytes(100_000))

    base = tmp_path / "ende"
    with pytest.raises(InputError) as raised:
        publish_version(base, write)
    assert str(raised.value) == f"{base}: cannot be written: no space left on device"
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_error_from_tensorflow_is_reported_in_one_line(tmp_path):
    import tensorflow as tf

    def write(directory):
        os.symlink("/dev/full", directory / "large")
        tf.io.write_file(str(directory / "large"), bytes(100_000))

    with pytest.raises(InputError, match="ende: cannot be written: no space left on device$"):
        publish_version(tmp_path / "ende", write)
    assert os.listdir(tmp_path) == []
    # Other TensorFlow errors are not reported as disk errors.
    with pytest.raises(tf.errors.InvalidArgumentError):
        publish_version(tmp_path / "ende", lambda directory: tf.io.decode_image(b"none"))


READ_ONLY = """
import os, sys
from pathlib import Path
from keras_seq.serving.publishing import check_base, publish_version, publish_directory
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
for call in (check_base, *(lambda path, f=f: f(path, Path.touch) for f in
             (publish_version, publish_directory))):
    for place in ("", "new/deep"):
        try:
            call(Path(sys.argv[1], place))
        except ValueError as error:
            print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_unwritable_directory_is_reported_as_permission_denied():
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o555)
        result = subprocess.run(
            [sys.executable, "-c", READ_ONLY, folder], capture_output=True, text=True, check=True
        )
        why = "cannot be written: permission denied"
        assert result.stdout.splitlines() == [
            f"{folder}: {why}",
            f"{folder / 'new/deep'}: {why}",
            f"{folder}: {why}",
            f"{folder / 'new/deep'}: {why}",
            f"{folder}: exists already, name another",
            f"{folder / 'new/deep'}: {why}",
        ]
        assert os.listdir(folder) == []
    finally:
        shutil.rmtree(folder)


def test_unusable_export_paths_are_rejected_before_writing(tmp_path, run):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    publish_version(tmp_path / "ende", fill)
    for place, why in {
        "file": "a file, expected a directory",
        "file/ende": "is a file",
        "link": "a link that leads nowhere",
        "ende/1": "a SavedModel itself, expected the directory above it",
        "run": "a run directory, expected a directory for exports",
    }.items():
        with pytest.raises(InputError, match=why) as raised:
            check_base(tmp_path / place)
        assert str(raised.value).startswith(f"{tmp_path / place}: ")
    for place in ("file", "link", "ende"):
        with pytest.raises(InputError, match="exists already, name another"):
            check_destination(tmp_path / place)
    with pytest.raises(InputError, match="is a file"):
        check_destination(tmp_path / "file" / "ende")
    with pytest.raises(InputError, match="file: cannot be written: "):
        publish_version(tmp_path / "file", fill)
    before = sorted(tmp_path.rglob("*"))
    check_base(tmp_path / "ende")
    check_base(tmp_path / "new" / "deep")
    check_destination(tmp_path / "new" / "deep")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_files_are_synced_to_disk_before_the_rename(tmp_path, monkeypatch):
    events = []
    real_fsync, real_rename = os.fsync, os.rename

    def fsync(handle):
        events.append(Path(os.readlink(f"/proc/self/fd/{handle}")))
        real_fsync(handle)

    def rename(source, target):
        events.append("rename")
        assert {Path(source), *Path(source).rglob("*")} <= set(events)
        real_rename(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    publish_version(tmp_path, fill)
    assert events[-2:] == ["rename", tmp_path]
    events.clear()
    publish_directory(tmp_path / "model", make(fill))
    assert events[-2:] == ["rename", tmp_path]


def test_polling_reader_never_sees_an_incomplete_version(tmp_path):
    seen, done = set(), threading.Event()

    def poll():
        while not done.is_set():
            for name in os.listdir(tmp_path):
                if name.isdigit():
                    assert is_whole(tmp_path / name)
                    seen.add(name)

    def write(directory):
        for name in FILES:
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_bytes(b"1" * 1000)
            time.sleep(0.002)

    failures = []
    previous = threading.excepthook
    threading.excepthook = lambda failure: failures.append(failure.exc_value)
    try:
        threads = [threading.Thread(target=poll) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(40):
            publish_version(tmp_path, write)
        done.set()
        for thread in threads:
            thread.join()
    finally:
        threading.excepthook = previous
    assert not failures
    assert len(seen) >= 39


def test_concurrent_publications_get_separate_versions(tmp_path):
    def publish(worker):
        for _ in range(5):
            publish_version(tmp_path, lambda directory: fill(directory, b"%d" % worker))

    threads = [threading.Thread(target=publish, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, os.listdir(tmp_path))) == list(range(1, 31))
    assert all(is_whole(tmp_path / name) for name in os.listdir(tmp_path))


SLOW = f"""
import sys, time
from pathlib import Path
from keras_seq.serving.publishing import publish_version
def write(directory):
    for name in {FILES}:
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_bytes(b"2" * 1000)
        print(name, flush=True)
        if sys.argv[2] == "wait" and name == "saved_model.pb":
            sys.stdin.read()
        time.sleep(0.001)
while True:
    print(publish_version(Path(sys.argv[1]), write), flush=True)
    if sys.argv[2] == "wait":
        break
"""


def process(base, how):
    return subprocess.Popen(
        [sys.executable, "-c", SLOW, base, how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_next_publication_removes_the_leftovers_of_a_killed_one(tmp_path):
    with process(tmp_path, "wait") as killed:
        assert killed.stdout.readline() == "saved_model.pb\n"
        killed.send_signal(signal.SIGKILL)
    left = os.listdir(tmp_path)
    assert len(left) == 1 and left[0].startswith(".tmp-")
    assert publish_version(tmp_path, fill) == tmp_path / "1"
    assert os.listdir(tmp_path) == ["1"]


@pytest.mark.slow
@pytest.mark.weekly
def test_kill_at_random_moments_never_leaves_an_incomplete_version(tmp_path):
    generator = random.Random(1)
    for _ in range(8):
        with process(tmp_path, "go on") as killed:
            killed.stdout.readline()
            time.sleep(generator.uniform(0, 0.03))
            killed.send_signal(signal.SIGKILL)
    assert all(is_whole(tmp_path / name) for name in os.listdir(tmp_path) if name.isdigit())
    publish_version(tmp_path, fill)
    names = os.listdir(tmp_path)
    assert sorted(map(int, names)) == list(range(1, len(names) + 1))


def test_files_of_a_running_publication_are_left_alone(tmp_path):
    with process(tmp_path, "wait") as living:
        assert living.stdout.readline() == "saved_model.pb\n"
        assert publish_version(tmp_path, fill) == tmp_path / "1"
        out, _ = living.communicate("")
    assert living.returncode == 0
    assert out.splitlines()[-1] == str(tmp_path / "2")
    assert is_whole(tmp_path / "2")
    assert sorted(os.listdir(tmp_path)) == ["1", "2"]


def test_publish_directory_writes_a_directory_or_a_single_file(tmp_path):
    assert publish_directory(tmp_path / "ct2" / "ende", make(fill)) == tmp_path / "ct2" / "ende"
    assert is_whole(tmp_path / "ct2" / "ende")
    seen = []

    def write(path):
        seen.append(path.name)
        path.write_text("model")

    file = publish_directory(tmp_path / "ende.keras", write)
    assert file.read_text() == "model"
    # Keras requires the suffix .keras, so the temporary path has it, too.
    assert seen == ["ende.keras"]
    assert sorted(os.listdir(tmp_path)) == ["ct2", "ende.keras"]


def test_existing_destination_is_not_overwritten(tmp_path):
    (tmp_path / "there").write_text("old")
    with pytest.raises(InputError, match="there: exists already, name another"):
        publish_directory(tmp_path / "there", lambda path: path.write_text("new"))
    assert (tmp_path / "there").read_text() == "old"


@pytest.mark.parametrize("appears", [Path.touch, Path.mkdir])
@pytest.mark.parametrize("write", [Path.touch, make(fill)])
def test_destination_that_appears_meanwhile_is_not_overwritten(tmp_path, appears, write):
    def meanwhile(path):
        write(path)
        appears(tmp_path / "model")

    with pytest.raises(InputError, match="model: exists already, name another"):
        publish_directory(tmp_path / "model", meanwhile)
    assert os.listdir(tmp_path) == ["model"]
    assert (tmp_path / "model").is_file() == (appears is Path.touch)
    assert (tmp_path / "model").is_file() or not os.listdir(tmp_path / "model")
