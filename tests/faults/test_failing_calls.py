"""Runs commands whose n-th write, flush, rename, new file or read fails, as on a broken disk.

`EVERY_CALL=1` fails each call in turn instead of some, which takes an hour.
"""

import errno
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from faults.training_process import command, write_corpus
from golden_archive import unpack

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
    ),
]

FOLDER = Path(__file__).parent
PAIRS = ("--pairs", "train.tsv", "--valid-pairs", "valid.tsv")
# A failure of these is not an error: the directory is there or is made again, and a
# file system without hard links renames the file instead.
HARMLESS = (
    *("mkdir /run", "mkdir /run/data", "mkdir /run/checkpoints"),
    *("link /model.keras", "link /lite.tflite"),
)
# A command may succeed although a read failed: settings are read more than once, the newest
# checkpoint is found without its name, a new temporary directory need not be searched for old
# files, an older checkpoint is read instead, and a training reads its text again if it cannot list
# the files of an earlier run at first.
FOUND_OTHERWISE = re.compile(
    r".* (/run/settings\.toml|\S*/checkpoints/latest|\S*/\.tmp-\S*)|opendir /run/\S+"
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "failing_calls.so"
    source = str(FOLDER / "failing_calls.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(path), source, "-ldl"], check=True)
    return path


@pytest.fixture
def sweep(library, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    write_corpus(folder)

    def run(arguments, first, step, error=errno.ENOSPC, later="once", kind="writes"):
        if "EVERY_CALL" in os.environ:
            first = step = 1
        paths = os.pathsep.join(sys.path)
        found = subprocess.run(
            [
                *(sys.executable, str(FOLDER / "failing_disk.py"), str(library), str(folder)),
                *(kind, str(error), later, str(first), str(step), *arguments),
            ],
            env=os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            check=True,
        )
        return [json.loads(line) for line in found.stdout.splitlines()]

    return run


def train_arguments(folder=Path(), run="out/run"):
    limits = {"max_steps": 4, "checkpoint_every": 2, "validate_every": 2}
    arguments = command(folder, run, **{f"training__{key}": n for key, n in limits.items()})
    return [*arguments, "--set=search.beam_size=1"]


def check(rows, message, fewest_calls):
    """Each failure is one clear line that names the file, and the same command then succeeds."""
    assert len(rows) > 1 and rows[-1]["calls"] >= fewest_calls, rows
    *failed, last = rows
    # The last command made fewer calls than the one that was to fail.
    assert last["code"] == 0 and not last["failed"], last
    for row in failed:
        assert row["left"] == [], row
        if row["failed"] in HARMLESS and row["code"] == 0:
            continue
        assert row["again"]["code"] == 0, row
        if row["failed"] in HARMLESS:
            continue
        assert row["code"] in (1, 2), row
        said = row["said"].rstrip("\n").split("\n")[-1]
        assert said.startswith("keras-seq: out/"), row
        check_line(row, said, message)


def check_line(row, said, message):
    assert message in said.lower(), row
    assert "Traceback" not in row["said"] and "internal error" not in row["said"], row


def check_reads(rows, fewest_calls):
    """A failed read is one line that names the file, unless the command can do without it."""
    assert len(rows) > 1 and rows[-1]["calls"] >= fewest_calls, rows
    *failed, last = rows
    assert last["code"] == 0 and not last["failed"], last
    for row in failed:
        assert row["again"]["code"] == 0 and row["left"] == [], row
        if row["code"] == 0:
            replaced = "read instead" in row["said"] and "damaged" in row["said"]
            assert replaced or FOUND_OTHERWISE.fullmatch(row["failed"]), row
            continue
        assert row["code"] in (1, 2), row
        said = row["said"].rstrip("\n").split("\n")[-1]
        # A path is named, and not only the error.
        assert re.match(r"keras-seq: (out|run|train\.tsv|valid\.tsv|lines\.txt)\b", said), row
        check_line(row, said, "input/output error")


def test_training_names_the_file_when_a_call_fails(sweep):
    check(sweep(train_arguments(), 200, 150), "no space left on device", 250)


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("error", "later"),
    [
        *itertools.product([errno.ENOSPC, errno.EIO], ["once", "later"]),
        # The server of a network disk is gone.
        (errno.ESTALE, "later"),
    ],
)
def test_training_survives_many_failures(sweep, error, later):
    check(sweep(train_arguments(), 1, 9, error, later), os.strerror(error).lower(), 250)


@pytest.mark.weekly
@pytest.mark.parametrize("later", ["once", "later"])
@pytest.mark.parametrize(
    ("format_", "target", "step", "fewest_calls"),
    [
        ("savedmodel", "out/served", 10, 80),
        ("onnx", "out/onnx", 8, 60),
        ("litert", "out/lite.tflite", 5, 10),
        ("ctranslate2", "out/ctranslate2", 5, 10),
    ],
)
def test_export_survives_many_failures(
    sweep, keras_seq_process, tmp_path, format_, target, step, fewest_calls, later
):
    folder = tmp_path / "files"
    (folder / "out").mkdir()
    trained = keras_seq_process(*train_arguments(folder, folder / "run"))
    assert trained.code == 0, trained.error
    rows = sweep(["export", "run", target, "--format", format_], 1, step, errno.ENOSPC, later)
    check(rows, "no space left on device", fewest_calls)


@pytest.mark.weekly
@pytest.mark.parametrize("later", ["once", "later"])
@pytest.mark.parametrize(
    ("arguments", "step", "fewest_calls"),
    [
        (["translate", "run", "lines.txt", "-o", "out/lines.hyp"], 1, 2),
        (["translate", "run", "lines.txt", "-o", "out/lines.gz"], 1, 2),
        (["average", "run", "out/mean", "--last", "1"], 6, 60),
        (["prepare", "out/text", *PAIRS], 7, 90),
        (["export", "run", "out/model.keras", "--format", "keras"], 2, 15),
    ],
    ids=["translate", "translate to gzip", "average", "prepare", "export to Keras"],
)
def test_other_commands_survive_failing_writes(
    sweep, tmp_path, arguments, step, fewest_calls, later
):
    """A run of the archive of old formats saves a training."""
    unpack("format-1.tar.xz", tmp_path)
    folder = tmp_path / "files"
    shutil.move(tmp_path / "transformer", folder / "run")
    (folder / "out").mkdir()
    (folder / "lines.txt").write_text("a b c\nf e\n")
    check(sweep(arguments, 1, step, errno.ENOSPC, later), "no space left on device", fewest_calls)


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("arguments", "step", "fewest_calls"),
    [
        (train_arguments(), 9, 150),
        # Resumes a training.
        ([*train_arguments(run="run"), "--set=training.max_steps=6"], 7, 120),
        (["translate", "run", "lines.txt", "-o", "out/lines.hyp"], 5, 60),
        (["export", "run", "out/served"], 11, 60),
    ],
    ids=["train", "resume", "translate", "export"],
)
def test_commands_survive_failing_reads(
    sweep, keras_seq_process, tmp_path, arguments, step, fewest_calls
):
    folder = tmp_path / "files"
    trained = keras_seq_process(*train_arguments(folder, folder / "run"))
    assert trained.code == 0, trained.error
    (folder / "out").mkdir()
    (folder / "lines.txt").write_text("a b c\nf e\n")
    check_reads(sweep(arguments, 1, step, errno.EIO, kind="reads"), fewest_calls)
