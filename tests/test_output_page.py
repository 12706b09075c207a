"""Every command of docs/output.md runs, and its output has the format that the page shows.

All commands run in this process, with one loaded model. Each line of a block is one command.
"""

import functools
import json
import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "output.md"
FEW = b"A man in an orange hat.\n\nTwo dogs run on the grass.\n"


def blocks(language):
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


COMMANDS = [line for block in blocks("bash") for line in block.splitlines()]


@pytest.fixture(scope="module")
def load():
    from keras_seq.inference.translator import Translator

    return functools.cache(Translator.load)


@pytest.fixture
def run_line(keras_seq_command, load, tiny_run, tmp_path, monkeypatch):
    """Returns a function that runs a line of the page in a folder with the page's files."""
    from keras_seq.inference.translator import Translator

    monkeypatch.setattr(Translator, "load", staticmethod(load))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "ende").symlink_to(tiny_run)
    (tmp_path / "few.en").write_bytes(FEW)

    def run(line):
        stdin = b""
        if " | " in line:
            before, line = line.split(" | ")
            assert before == "head -2 few.en"
            stdin = b"".join(FEW.splitlines(keepends=True)[:2])
        program, *arguments = shlex.split(line)
        assert program == "keras-seq"
        outcome = keras_seq_command(*arguments, stdin=stdin)
        assert outcome.code == 0, (line, outcome.err)
        return outcome

    return run


def shown_after(words):
    """Returns the example output that the page shows after the command with these words."""
    text = PAGE.read_text(encoding="utf-8")
    block = text[text.index(words) :].split("```\n")
    return block[2].split("\n")[:-1]


def keys(value):
    """Returns the keys of a JSON object and of all nested objects."""
    if isinstance(value, list):
        return keys(value[0]) if value else None
    if isinstance(value, dict):
        return [(name, keys(inner)) for name, inner in value.items()]
    return None


@pytest.mark.docs
@pytest.mark.weekly
def test_output_page_commands_run_and_write_what_the_page_shows(run_line, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra plot is not installed")
    outcomes = {line: run_line(line) for line in COMMANDS}
    assert len(outcomes) == len(COMMANDS) > 9

    def lines(options):
        return outcomes[f"keras-seq translate runs/ende {options}"].lines

    tsv = "few.en --format tsv --alignment hard"
    assert shown_after(tsv)[0] == lines(tsv)[0]
    for row, shown in zip(lines(tsv), shown_after(tsv), strict=True):
        assert row.count("\t") == shown.count("\t")
    for options in (
        "few.en --format jsonl --alignment hard",
        '"Two dogs run." --format jsonl --alignment soft',
    ):
        for line, shown in zip(lines(options), shown_after(options), strict=True):
            assert keys(json.loads(line)) == keys(json.loads(shown))
    hard = "few.en --alignment hard"
    for line, shown in zip(lines(hard), shown_after(hard), strict=True):
        assert (" ||| " in line) == (" ||| " in shown)
    assert lines("few.en --n-best 2")[2] == shown_after("few.en --n-best 2")[2]
    (term,) = (one for line, one in outcomes.items() if line.endswith("term"))
    assert shown_after("--attention png")[0].split("->")[0] in term.err
    assert {path.name for path in tmp_path.iterdir()} == {
        "runs", "few.en", "attention.html", "attention-1.png", "attention-3.png", "beam.html",
    }  # fmt: skip
