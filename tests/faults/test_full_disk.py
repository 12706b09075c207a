"""A disk that is full, a file that may not grow, a directory that may not be written."""

import subprocess
import sys

import pytest
from faults.training_process import Training, command, write_corpus

from keras_seq.run import Run

EVERY = {
    "training__max_steps": 40,
    "training__checkpoint_every": 2,
    "training__validate_every": 10**6,
    "training__keep_checkpoints": 1000,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("disk")
    write_corpus(folder)
    return folder


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 2 MB, a function that makes it read-only."""

    def mount(*options):
        command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(tmp_path)]
        return subprocess.run(command, capture_output=True, check=False).returncode

    if sys.platform != "linux" or mount("size=2m"):
        pytest.skip("needs the right to mount a file system")
    yield tmp_path, lambda: mount("remount", "ro")
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_full_disk_and_then_a_read_only_one(folder, small_disk):
    disk, make_read_only = small_disk
    write_corpus(disk)
    code, said = Training(command(disk, "run", **EVERY)).end()
    assert code == 1, said
    run = Run.open(disk / "run")
    saved = run.saved_steps
    assert saved == list(range(2, saved[-1] + 1, 2)) and saved[-1] < 40
    assert "not saved: no space left on device" in said.split("\n")[-1]
    assert said.endswith(f"the last one saved is step {saved[-1]}")
    assert "Traceback" not in said
    assert not list(disk.rglob(".tmp-*"))
    # Nothing is trained where nothing can be saved.
    assert make_read_only() == 0
    code, said = Training(command(disk, "run", **EVERY)).end()
    assert code == 2, said
    assert "cannot be written: read-only file system" in said.split("\n")[-1]
    assert "going on" not in said


def test_a_disk_that_others_fill_after_the_save(folder, small_disk):
    """The logs cannot be written: said with the file, and the checkpoint is there."""
    disk, _ = small_disk
    code = f"""
import keras_seq.translator as translator
call = translator.Translator.__call__
def filling(self, lines):
    found = call(self, lines)
    try:
        with open("{disk}/others", "wb", buffering=0) as stream:
            while stream.write(bytes(4096)):
                pass
    except OSError:
        pass
    return found
translator.Translator.__call__ = filling
"""
    settings = EVERY | {"training__validate_every": 4}
    arguments = command(folder, "run", **settings)
    arguments[1] = str(disk / "run")
    ended, said = Training(arguments, code).end()
    assert ended == 1, said
    assert "samples.txt: not written: no space left on device" in said.split("\n")[-1]
    assert "Traceback" not in said
    assert Run.open(disk / "run").saved_steps == [2, 4]
    (disk / "others").unlink()
    ended, said = Training(arguments).end()
    assert ended == 1 and "going on after step 4\n" in said, said


def test_a_limit_on_the_size_of_files(folder):
    code = """
import resource
import keras_seq.checkpoints as checkpoints
save = checkpoints.CheckpointStore.save
def then_limit(self, *arguments):
    path = save(self, *arguments)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    return path
checkpoints.CheckpointStore.save = then_limit
"""
    ended, said = Training(command(folder, "limit", **EVERY), code).end()
    assert ended == 1, said
    assert said.endswith("not saved: file too large; the last one saved is step 2")
    assert Run.open(folder / "limit").saved_steps == [2]
    assert not list(folder.rglob(".tmp-*"))
    ended, said = Training(command(folder, "limit", **EVERY)).end()
    assert ended == 0, said
    assert "going on after step 2" in said
