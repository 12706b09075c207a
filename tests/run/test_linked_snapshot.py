"""A run in the cache of the Hugging Face Hub, in which every file is a link, and the advice."""

import hashlib
import os
import subprocess

import pytest

from keras_seq.run import Run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links of POSIX")


@pytest.fixture
def snapshot(tiny_run, tmp_path):
    """The files of a run as links to files that are named after their content."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "0123"
    blobs.mkdir()
    for file in filter(os.path.isfile, tiny_run.rglob("*")):
        content = file.read_bytes()
        blob = blobs / hashlib.sha256(content).hexdigest()
        blob.write_bytes(content)
        link = snapshot / file.relative_to(tiny_run)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))
    return snapshot


def test_the_advice_for_links_makes_a_run_that_opens(
    snapshot, tiny_run, tmp_path, keras_seq_command
):
    outcome = keras_seq_command("translate", snapshot, "hi")
    advice = "cp -rL copies what links lead to"
    assert outcome.code == 2
    assert outcome.error == f"{snapshot}/settings.toml: a link, expected a regular file; {advice}"
    command = advice.partition(" copies")[0].split()
    subprocess.run([*command, snapshot, tmp_path / "copy"], check=True)
    copy = Run.open(tmp_path / "copy")
    copy.require_weights("best")
    assert copy.checkpoints.steps == Run.open(tiny_run).checkpoints.steps
