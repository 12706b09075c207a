"""Every command and block of docs/tuning.md runs.

The trainings are known functions of the settings; tests/cli/test_tune.py trains in processes.
`keras-seq demo` is left out, because tests/cli/test_demo.py runs it.
"""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from tuning.known_training import KnownTraining, distance

from keras_seq.text.dates import date_pairs
from keras_seq.tuning import Tuning, measure_learning_curve

pytestmark = pytest.mark.docs

PAGE = Path(__file__).resolve().parents[1] / "docs" / "tuning.md"
SMALL = ["--set=training.max_steps=1", "--set=training.validate_every=1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files that the page names."""
    pairs = date_pairs(200)
    corpus = tmp_path / "runs" / "demo" / "corpus"
    corpus.mkdir(parents=True)
    for split, part in (("train", pairs[:160]), ("valid", pairs[160:])):
        for index, name in enumerate(("date", "iso")):
            text = "".join(f"{pair[index]}\n" for pair in part)
            (corpus / f"{split}.{name}").write_text(text, encoding="utf-8")
    text = "".join(f"{source}\t{target}\n" for source, target in pairs)
    (tmp_path / "pairs.tsv").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(language):
    text = PAGE.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.mark.weekly
def test_every_block_of_the_tuning_page_runs(folder, monkeypatch, keras_seq_command):
    for function in (Tuning.__init__, measure_learning_curve):
        monkeypatch.setitem(function.__kwdefaults__, "train", KnownTraining(distance))
    lines = [line for block in blocks("bash") for line in block.split("\n") if line]
    assert len(lines) > 8
    for line in lines:
        if line.startswith("head "):
            subprocess.run(line, shell=True, check=True)
            continue
        program, command, *arguments = shlex.split(line)
        assert program == "keras-seq"
        if command == "demo":
            continue
        if command in ("tune", "curve") and "--dry-run" not in arguments:
            arguments += SMALL
        outcome = keras_seq_command(command, *arguments)
        assert outcome.code == 0, f"{line}\n{outcome.err}"
    for block in blocks("python"):
        exec(block, {})
    assert len(list((folder / "runs" / "python" / "trials").iterdir())) == 3
