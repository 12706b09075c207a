"""Every example of docs/metrics.md runs, and the page names every metric."""

import re
from pathlib import Path

import pytest

from keras_seq import metrics

pytestmark = pytest.mark.docs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


@pytest.mark.weekly
def test_examples_of_the_metrics_page_run_in_order(capsys):
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) == 4
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), namespace)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    # From sacreBLEU 2.6.0: CHRF().corpus_score(["a dog ran"], [["a dog runs"]]).
    assert lines[2] == "42.59"


def test_the_metrics_page_names_every_metric():
    text = PAGE.read_text("utf-8")
    assert [name for name in metrics.__all__ if f"| `{name}` |" not in text] == []
