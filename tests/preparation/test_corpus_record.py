"""A run resumes only with the text that it started with, under any file names."""

import shutil

import pytest

from keras_seq.preparation import find_run, open_or_prepare
from keras_seq.preparation.record import known_counts
from keras_seq.settings import load_settings
from keras_seq.text import InputError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        lines = "".join(f"line {n} of {number}\tline {n}\n" for n in range(20))
        (tmp_path / f"part-{number}.tsv").write_text(lines)
        (tmp_path / f"part-{number}.w").write_text("1\n" * 20)
    (tmp_path / "valid.tsv").write_text("a\tb\n")
    return tmp_path


def settings(**data):
    overrides = {"pairs": "part-*.tsv", "valid_pairs": "valid.tsv"} | data
    return load_settings(overrides={f"data.{key}": value for key, value in overrides.items()})


def opened(**data) -> None:
    open_or_prepare(settings(**data), "run").unlock()


def test_same_text_under_other_file_names_is_accepted(folder):
    opened()
    assert known_counts(find_run("run"), settings().data)[:2] == (40, 40)
    opened(pairs=["part-1.tsv", "part-2.tsv"])
    for number in (1, 2):
        shutil.copy(f"part-{number}.tsv", f"copy-{number}.tsv")
    opened(pairs="copy-*.tsv")
    # Counts are only known for the file names in the record.
    assert known_counts(find_run("run"), settings(pairs="copy-*.tsv").data) is None


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"pairs": "part-1.tsv"}, "data.pairs 2 files -> 1 files"),
        ({"pairs": ["part-2.tsv", "part-1.tsv"]}, "part-1.tsv of .* -> part-2.tsv of .*, other co"),
        ({"file_weights": [1, 2]}, r"data.file_weights none -> \[1.0, 2.0\]"),
        ({"weights": "part-*.w"}, r"data.weights none -> part-1.w and 1 more"),
        ({"alignments": "part-*.w"}, r"data.alignments none -> part-1.w and 1 more"),
        ({"pairs": "*.none"}, r"\*.none: no file has a name like this"),
    ],
)
def test_changed_set_of_corpus_files_is_refused(folder, data, words):
    opened()
    with pytest.raises(InputError, match=words):
        opened(**data)


def test_changed_columns_are_refused_and_their_pairs_counted_anew(folder):
    (folder / "part-1.tsv").write_text("a\tb\tc\n\td\te\n" * 20)
    given = {"pairs": "part-1.tsv", "columns": "source=1,target=2", "valid_pairs": None}
    opened(**given)
    opened(**given)
    assert known_counts(find_run("run"), settings(**given).data)[:2] == (40, 20)
    changed = given | {"columns": "source=2,target=3"}
    assert known_counts(find_run("run"), settings(**changed).data) is None
    with pytest.raises(InputError, match="data.columns source=1,target=2 -> source=2,target=3"):
        opened(**changed)


def test_new_file_matching_the_pattern_is_refused(folder):
    opened()
    shutil.copy("part-1.tsv", "part-3.tsv")
    assert known_counts(find_run("run"), settings().data) is None
    with pytest.raises(InputError, match="data.pairs 2 files -> 3 files"):
        opened()


def test_changed_weights_are_refused(folder):
    given = {"weights": "part-*.w", "file_weights": [1, 0.5]}
    opened(**given)
    opened(**given)
    for changed, words in (
        ({"file_weights": [1, 0.25]}, r"data.file_weights \[1.0, 0.5\] -> \[1.0, 0.25\]"),
        ({"weights": None}, "data.weights part-1.w and 1 more -> none"),
    ):
        with pytest.raises(InputError, match=words):
            opened(**(given | changed))
    (folder / "part-2.w").write_text("1\n" * 19 + "2\n")
    with pytest.raises(InputError, match="data.weights part-2.w of 40 bytes -> .*, other content"):
        opened(**given)
    assert known_counts(find_run("run"), settings(**given).data) is None
