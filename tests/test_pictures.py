"""The script that draws the pictures of the documentation runs, and the pictures are small."""

import subprocess
import sys
from pathlib import Path

import pytest
from web_page import BROWSER, DRIVER

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"


@pytest.mark.docs
@pytest.mark.skipif(not BROWSER or not DRIVER, reason="chromium is not installed")
def test_script_draws_every_picture(tiny_rnn_run, tmp_path):
    script = ROOT / "docs" / "make_pictures.py"
    data = tiny_rnn_run / "data"
    columns = [
        (data / f"valid.{side}").read_text("utf-8").split("\n") for side in ("source", "target")
    ]
    lines = ["\t".join(pair) for pair in zip(*columns, strict=True)][:5]
    unseen = tmp_path / "unseen.tsv"
    unseen.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    drawings = tmp_path / "pictures"
    drawings.mkdir()
    command = [sys.executable, script, tiny_rnn_run, unseen, columns[0][0], drawings]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    drawn = {path.name for path in drawings.iterdir()}
    assert drawn == {path.name for path in PICTURES.iterdir()}
    for path in drawings.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")


def test_pictures_are_small():
    for path in PICTURES.iterdir():
        assert path.stat().st_size < 100_000, path
