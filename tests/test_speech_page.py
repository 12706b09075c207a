"""Every Python block of docs/speech.md runs, in order and in one process."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

PAGE = Path(__file__).resolve().parents[1] / "docs" / "speech.md"
EXAMPLES = PAGE.parents[1] / "examples"


def test_every_python_block_of_the_speech_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) >= 5
    names: dict = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    printed = capsys.readouterr().out.split("\n")
    # Expected frames: 61 for one second, and 30 complete frames for half a second.
    assert printed[0] == "(2, 61, 32) [61 30]"
    assert printed[1] == "True"


def test_examples_named_on_the_speech_page_exist():
    named = re.findall(r"examples/(\w+\.py)", PAGE.read_text("utf-8"))
    assert named and all((EXAMPLES / name).is_file() for name in named)
