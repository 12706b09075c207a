"""The script that draws the pictures of the documentation runs, and the pictures are small."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"


@pytest.mark.docs
def test_script_draws_every_picture(tiny_rnn_run, tmp_path):
    script = ROOT / "docs" / "make_pictures.py"
    line = (tiny_rnn_run / "data" / "valid.source").read_text(encoding="utf-8").split("\n")[0]
    command = [sys.executable, script, tiny_rnn_run, line, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in PICTURES.iterdir()}
    for path in tmp_path.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")


def test_pictures_are_small():
    for path in PICTURES.iterdir():
        assert path.stat().st_size < 100_000, path
