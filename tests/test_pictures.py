"""The scripts that draw the pictures of the documentation run, and the pictures are small."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from web_page import BROWSER, DRIVER

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"


@pytest.mark.docs
@pytest.mark.skipif(not BROWSER or not DRIVER, reason="chromium is not installed")
@pytest.mark.weekly
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
    assert drawn == {path.name for path in PICTURES.iterdir() if path.suffix == ".png"}
    for path in drawings.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")


PRINTING = r"""
import sys, time
print("first " + 120 * "x")
for step in range(40):
    time.sleep(0.01)
    print(f"\r\x1b[Kstep {step}", end="", flush=True)
print("\r\x1b[Klast <&>")
assert sys.stdout.isatty()
"""


@pytest.mark.docs
def test_recording_shows_each_line_and_the_states_of_a_replaced_line(tmp_path):
    script = ROOT / "docs" / "make_recording.py"
    picture = tmp_path / "recording.svg"
    subprocess.run(
        [sys.executable, script, picture, sys.executable, "-c", PRINTING],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    texts = list(ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text"))
    always = [text.text for text in texts if "visibility" not in text.attrib]
    assert always[1:] == ["first " + 94 * "x", 26 * "x", "last <&>"]
    passing = [text.text for text in texts if "visibility" in text.attrib]
    steps = [int(text.removeprefix("step ")) for text in passing]
    assert steps == sorted(steps) and 10 <= len(steps) <= 24


def test_pictures_are_small():
    for path in PICTURES.iterdir():
        assert path.stat().st_size < 100_000, path
