"""Every block of docs/diagnosis.md runs in this process, and its lists of keys are complete."""

import json
import re
import shlex
from pathlib import Path

import pytest

pytestmark = [pytest.mark.docs, pytest.mark.usefixtures("without_graphs")]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "diagnosis.md"


@pytest.fixture
def folder(tiny_run, tmp_path, monkeypatch):
    """A folder with a run and texts under the names that the page uses."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "ende").symlink_to(tiny_run)
    (tmp_path / "val.en").write_text("March 5, 2021\n5 mai 1999\n")
    (tmp_path / "val.de").write_text("2021-03-05\n1999-05-05\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(language):
    text = PAGE.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def keys_of(name):
    """Returns the cell that describes a key in the page's table of the JSON output."""
    (row,) = re.findall(rf"^\| `{name}` \| (.*) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return row


@pytest.mark.weekly
def test_diagnosis_page_blocks_run_and_list_every_json_key(folder, keras_seq_command):
    lines = [line for block in blocks("bash") for line in block.split("\n") if line]
    assert len(lines) == 6
    for line in lines:
        command, _, output = line.partition(" > ")
        program, *arguments = shlex.split(command)
        assert program == "keras-seq"
        # Use small beam sizes, because the default goes up to 50.
        if not {"--beam-sizes", "likelihood"} & {*arguments}:
            arguments += ["--beam-sizes", "3,5"]
        outcome = keras_seq_command(*arguments)
        assert outcome.code == 0, f"{line}\n{outcome.err}"
        if output:
            (folder / output).write_bytes(outcome.out)
    found = json.loads((folder / "found.json").read_text("utf-8"))
    page = PAGE.read_text("utf-8")
    for name in found:
        assert re.search(rf"^\|[^|]*`{name}`", page, re.MULTILINE), name
    for name, example in (
        ("totals", found["totals"]),
        ("beams", found["beams"][0]),
        ("oracle_bleu", found["oracle_bleu"]),
        ("lines", found["lines"][0]),
    ):
        said = set(re.findall(r"`(\w+)`", keys_of(name)))
        assert set(example) <= said <= set(example) | {"value", "signature"}
    output, reference = found["lines"][0]["outputs"][0], found["lines"][0]["reference"]
    sentence = page[page.index("A `reference` has") :].partition("\n\n")[0]
    assert set(output) | set(reference) <= set(re.findall(r"`(\w+)`", sentence))
    assert (folder / "found.html").stat().st_size > 10_000
    for block in blocks("python"):
        # This process has already loaded TensorFlow.
        exec(block, {})
