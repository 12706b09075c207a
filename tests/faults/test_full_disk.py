"""Training on a full disk, under a file size limit, and in a read-only directory."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from faults.training_process import Training, command, write_corpus

from keras_seq.run import Run

pytestmark = pytest.mark.process

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
    """A file system of 2 MB, and a function that makes the file system read-only."""

    def mount(*options):
        command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(tmp_path)]
        return subprocess.run(command, capture_output=True, check=False).returncode

    if sys.platform != "linux" or mount("size=2m"):
        pytest.skip("needs the right to mount a file system")
    yield tmp_path, lambda: mount("remount", "ro")
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_full_or_read_only_disk_ends_training_with_a_clear_error(folder, small_disk):
    disk, make_read_only = small_disk
    write_corpus(disk)
    code, said = Training(command(disk, "run", **EVERY)).end()
    assert code == 1, said
    run = Run.open(disk / "run")
    saved = run.checkpoints.steps
    assert saved == list(range(2, saved[-1] + 1, 2)) and saved[-1] < 40
    assert "not saved: no space left on device" in said.split("\n")[-1]
    assert said.endswith(f"the last one saved is step {saved[-1]}")
    assert "Traceback" not in said
    assert not list(disk.rglob(".tmp-*"))
    # Training does not start if checkpoints cannot be saved.
    assert make_read_only() == 0
    code, said = Training(command(disk, "run", **EVERY)).end()
    assert code == 2, said
    assert "cannot be written: read-only file system" in said.split("\n")[-1]
    assert "resuming" not in said
    code, said = Training(command(disk, "another", **EVERY)).end()
    assert code == 2, said
    assert said.endswith(f"{disk}/another: cannot be written: read-only file system")


def test_checkpoint_is_kept_when_the_disk_fills_up_after_the_save(folder, small_disk):
    """The error names the log file that cannot be written; the checkpoint is complete."""
    disk, _ = small_disk
    code = f"""
import keras_seq.inference.translator as translator
call = translator.Translator.translate
def filling(self, lines):
    found = call(self, lines)
    try:
        with open("{disk}/others", "wb", buffering=0) as stream:
            while stream.write(bytes(4096)):
                pass
    except OSError:
        pass
    return found
translator.Translator.translate = filling
"""
    settings = EVERY | {"training__validate_every": 4}
    arguments = command(folder, "run", **settings)
    arguments[1] = str(disk / "run")
    ended, said = Training(arguments, code).end()
    assert ended == 1, said
    assert "samples.txt: not written: no space left on device" in said.split("\n")[-1]
    assert "Traceback" not in said
    assert Run.open(disk / "run").checkpoints.steps == [2, 4]
    (disk / "others").unlink()
    ended, said = Training(arguments).end()
    assert ended == 1 and "resuming after step 4\n" in said, said


# Limits the size of files after each save, so that the second save fails.
AFTER_A_SAVE = """
import resource
import keras_seq.storage.checkpoints.store as checkpoints
save = checkpoints.CheckpointStore.save
def then_limit(self, *arguments):
    path = save(self, *arguments)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    return path
checkpoints.CheckpointStore.save = then_limit
"""
# Makes all writes fail from the call of {owner}.{method} on.
BEFORE = """
import resource
from {module} import {owner}
call = {owner}.{method}
def limit_then(self, *arguments, **options):
    if options.get("group") != "training/":
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    return call(self, *arguments, **options)
{owner}.{method} = limit_then
"""
# Drops all capabilities, because root ignores file permissions.
POWERLESS = """
import ctypes
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
if hasattr(ctypes.CDLL(None), "capset"):
    ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)())
"""


@pytest.fixture(scope="module")
def limited(folder):
    """A run whose second save failed, and the standard error of its training."""
    ended, said = Training(command(folder, "limited", **EVERY), AFTER_A_SAVE).end()
    assert ended == 1, said
    return folder / "limited", said


@pytest.fixture
def stopped(limited, folder, tmp_path):
    """A copy of the `limited` run, and the command that resumes the copy."""
    shutil.copytree(limited[0], tmp_path / "run")
    return tmp_path / "run", [
        argument if argument != str(limited[0]) else str(tmp_path / "run")
        for argument in command(folder, "limited", **EVERY)
    ]


def test_file_size_limit_is_reported_and_training_resumes_without_it(limited, stopped):
    path, said = limited
    assert said.endswith("not saved: file too large; the last one saved is step 2")
    assert "Traceback" not in said
    run, arguments = stopped
    assert Run.open(run).checkpoints.steps == [2]
    assert not list(path.rglob(".tmp-*"))
    # If a final file cannot be written, the error names it, and the same command writes it later.
    for module, owner, method, name in (
        ("keras_seq.training.event_log", "EventLog", "write", "tensorboard"),
        ("keras_seq.run", "Run", "write_result", "result.json"),
    ):
        code = BEFORE.format(module=module, owner=owner, method=method)
        ended, said = Training(arguments, code).end()
        assert ended == 1, said
        assert f"{run}/{name}: not written: file too large" in said.split("\n")[-1], said
    # The last attempt trained nothing, because all updates were saved.
    assert "resuming" not in said and "Traceback" not in said
    ended, said = Training(arguments).end()
    assert ended == 0, said
    assert Run.open(run).read_result()["result"]["steps"] == EVERY["training__max_steps"]
    assert "40 of 40" in (run / "README.md").read_text()


@pytest.mark.skipif(
    os.name != "posix" or (sys.platform != "linux" and os.geteuid() == 0),
    reason="needs permissions that count",
)
def test_unwritable_run_directory_stops_training_before_it_resumes(stopped):
    """Training does not start if checkpoints cannot be saved."""
    run, arguments = stopped
    directory = run / "checkpoints"
    directory.chmod(0o500)
    try:
        ended, said = Training(arguments, POWERLESS).end()
    finally:
        directory.chmod(0o700)
    assert ended == 2, said
    assert f"{directory}: cannot be written: permission denied" in said.split("\n")[-1]
    assert "resuming" not in said and "Traceback" not in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_training_does_not_need_its_messages(folder):
    limits = {"max_steps": 4, "checkpoint_every": 2, "validate_every": 2}
    arguments = command(folder, "quiet", **{f"training__{key}": n for key, n in limits.items()})
    full = "import os, sys\nos.dup2(os.open('/dev/full', os.O_WRONLY), 2)"
    code, said = Training(arguments, full).end()
    assert (code, said) == (0, "")
    assert Run.open(folder / "quiet").checkpoints.steps == [2, 4]
