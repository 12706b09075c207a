"""Every example of docs/callbacks.md runs, and every callback has an example."""

import re
from pathlib import Path

import pytest

from keras_seq import callbacks

pytestmark = [pytest.mark.jax, pytest.mark.docs]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "callbacks.md"


@pytest.mark.weekly
def test_examples_of_the_callbacks_page_run_in_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) > len(callbacks.__all__) - 5
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), namespace)
    said = capsys.readouterr()
    assert "\nstep 10, line 1\n  source    " in f"\n{said.err}"
    assert said.out == "1 updates skipped so far\n3 updates skipped so far\n"


def test_every_callback_has_an_example():
    text = PAGE.read_text("utf-8")
    assert [name for name in callbacks.__all__ if f"callbacks.{name}(" not in text] == []
