"""Every command of docs/classification.md runs on a small text with a small model."""

import json
import re
import shlex
from pathlib import Path

import pytest
from label_runs import labeled_lines, tagged_lines, write_lines

pytestmark = [pytest.mark.docs, pytest.mark.usefixtures("without_graphs")]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "classification.md"
SMALL = {"training.max_steps": 1, "training.sample_count": 1, "model.embedding_units": 8}
WIDTHS = {
    "bag": {"model.hidden_units": 8},
    "birnn": {"model.units": 8},
    "classify": {"model.members": 1, "model.filters": 8},
    "tag": {"model.units": 8},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that the page names."""
    folder = tmp_path_factory.mktemp("page")
    for name, lines in (("weather", labeled_lines), ("names", tagged_lines)):
        write_lines(folder / f"{name}.tsv", lines(80, 1))
        write_lines(folder / f"{name}-valid.tsv", lines(6, 2))
    (folder / "texts.txt").write_text("ada left berlin\n\nrain\n")
    return folder


def blocks(language):
    text = PAGE.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def small(arguments):
    if arguments[0] == "export":
        # tests/serving verifies that an export gives the same results as its run.
        return [*arguments, "--verify", "0"]
    if arguments[0] != "train":
        return arguments
    option = "--preset" if "--preset" in arguments else "--task"
    widths = WIDTHS[arguments[arguments.index(option) + 1]]
    return [*arguments, *(f"--set={key}={value}" for key, value in (SMALL | widths).items())]


@pytest.mark.weekly
def test_classification_page_commands_and_python_run(folder, monkeypatch, keras_seq_command):
    monkeypatch.chdir(folder)
    commands = [shlex.split(line) for block in blocks("bash") for line in block.split("\n") if line]
    said = {}
    for program, *arguments in commands:
        assert program == "keras-seq"
        outcome = keras_seq_command(*small(arguments))
        assert outcome.code == 0, f"{shlex.join(arguments)}\n{outcome.err}"
        said[shlex.join(arguments)] = outcome.out.decode()
    (python,) = blocks("python")
    overrides = "".join(f'"{k}": {v},' for k, v in (SMALL | WIDTHS["bag"]).items())
    exec(python.replace('"training.max_minutes": 5', overrides), {})
    labels = said["classify runs/weather texts.txt"].splitlines()
    ranked = said["classify runs/weather texts.txt --format jsonl"].splitlines()
    assert [json.loads(line)["label"] for line in ranked] == labels and len(labels) == 3
    assert len(said["tag runs/names texts.txt"].splitlines()[0].split()) == 3
    assert said["classify runs/weather --labeled weather-valid.tsv"].startswith("accuracy ")
    assert said["tag runs/names --labeled names-valid.tsv"].startswith("entities")
