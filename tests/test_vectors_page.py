"""Every block of docs/vectors.md runs, and the defaults that the page names are right."""

import re
import shlex
from pathlib import Path

import pytest

from keras_seq.vectors import VectorSettings

pytestmark = pytest.mark.docs

PAGE = Path(__file__).resolve().parents[1] / "docs" / "vectors.md"
LINES = (
    "the king is a man and the queen is a woman\n"
    "a dog runs and the man and the woman run\n"
    "the king has a dog\n"
)


def blocks(language):
    text = PAGE.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "corpus.txt").write_text(LINES * 20)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.weekly
def test_every_block_of_the_vectors_page_runs(folder, keras_seq_command, capsysbinary):
    lines = [line for block in blocks("bash") for line in block.split("\n") if line]
    assert len(lines) == 10
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "keras-seq"
        outcome = keras_seq_command(*arguments)
        assert outcome.code == 0, f"{line}\n{outcome.err}"
    made = {"vectors.txt", "cbow.txt", "glove.txt", "parts.txt", "parts.txt.ngrams"}
    assert {path.name for path in folder.iterdir()} == made | {"corpus.txt", "map.html", "map.png"}
    names: dict = {}
    for block in blocks("python"):
        exec(block, names)
    assert names["found"].tolist() == [False, True, True, False]
    assert names["embedding"].input_dim == 4
    assert b"queen" in capsysbinary.readouterr().out


def test_vectors_page_names_the_right_defaults():
    page, settings = PAGE.read_text("utf-8"), VectorSettings()
    assert f"`--min-count` ({settings.min_count})" in page
    assert f"--subsample, {settings.subsample:g}" in page
    assert f"{settings.min_ngram} to {settings.max_ngram} characters" in page
