"""`keras-seq likelihood`: scores per line, token and corpus, and its errors."""

import functools
import json
import math

import pytest

SOURCES = ["March 5, 2021", "", "5 mai 1999", "July"]
TARGETS = ["2021-03-05", "", "1999-05-05", ""]


@pytest.fixture
def files(tmp_path):
    def write(source=SOURCES, target=TARGETS):
        for name, lines in (("source", source), ("target", target)):
            text = lines if isinstance(lines, bytes) else "".join(f"{line}\n" for line in lines)
            (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return tmp_path / "source", tmp_path / "target"

    return write


# Tests without TensorFlow


@pytest.mark.usefixtures("without_tensorflow")
@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (["a"], ["a", "b"], "source has 1 lines but {target} has 2: line N of one must go with"),
        (["a", "b"], b"", "source has 2 lines but {target} has 0"),
    ],
)
def test_likelihood_rejects_files_of_different_lengths(
    keras_seq_command, tiny_run, files, source, target, words
):
    paths = files(source, target)
    outcome = keras_seq_command("likelihood", tiny_run, *paths)
    assert (outcome.code, outcome.out) == (2, b"")
    assert words.format(target=paths[1]) in outcome.error


@pytest.mark.usefixtures("without_tensorflow")
def test_likelihood_rejects_a_missing_run_or_unreadable_text(
    keras_seq_command, tiny_run, files, tmp_path
):
    paths = files()
    for arguments, words in (
        (["absent", *paths], "absent: no such run directory"),
        ([tiny_run, "absent", paths[1]], "absent: no such file"),
        ([tiny_run, paths[0], tmp_path], "is a directory"),
        ([tiny_run, "-", "-"], "standard input cannot be both source and target"),
        ([tiny_run, *paths, "--each", "word"], "'line', 'token', 'corpus'"),
    ):
        outcome = keras_seq_command("likelihood", *arguments)
        assert (outcome.code, outcome.out) == (2, b""), arguments
        assert words in outcome.error


# Tests with a model


@pytest.fixture(scope="module")
def load():
    from keras_seq.inference.likelihood import LikelihoodScorer

    return functools.cache(LikelihoodScorer.load)


@pytest.fixture
def likelihood(keras_seq_command, tiny_run, load, monkeypatch):
    """Runs `keras-seq likelihood` on the tiny run, which is loaded and compiled only once."""
    from keras_seq.inference.likelihood import LikelihoodScorer

    monkeypatch.setattr(LikelihoodScorer, "load", staticmethod(load))
    return functools.partial(keras_seq_command, "likelihood", tiny_run)


def test_likelihood_per_line_token_and_corpus_agree(likelihood, tiny_run, load, files):
    paths = files()
    expected = load(str(tiny_run), which="best", notice=None)(SOURCES, TARGETS)
    outcome = likelihood(*paths)
    assert outcome.code == 0
    assert outcome.lines == [f"{one.total:.6f}\t{len(one.tokens)}" for one in expected]
    assert outcome.lines[1] == "0.000000\t0"

    rows = [line.split("\t") for line in likelihood(*paths, "--each", "token").lines]
    assert [int(row[0]) for row in rows] == [1] * len(expected[0].tokens) + [3] * len(
        expected[2].tokens
    ) + [4]
    assert [row[1] for row in rows if row[1] == "</s>"] == ["</s>"] * 3
    first = "".join(row[1] for row in rows if row[0] == "1")
    assert first == "▁2021-03-05</s>"
    total = math.fsum(float(row[2]) for row in rows)

    outcome = likelihood(*paths, "--each", "corpus")
    (found,) = map(json.loads, outcome.lines)
    assert (found["lines"], found["tokens"], found["truncated_sources"]) == (4, len(rows), 0)
    assert found["log_probability"] == pytest.approx(total, abs=1e-4)
    assert found["perplexity"] == pytest.approx(math.exp(-total / len(rows)), rel=1e-5)
    said = likelihood(*paths).err
    assert f"perplexity {found['perplexity']:.4f} of {len(rows)} tokens in 4 lines" in said


def test_likelihood_reads_either_side_from_standard_input(likelihood, files):
    source, target = files()
    expected = likelihood(source, target).out
    assert likelihood("-", target, stdin=source.read_bytes()).out == expected
    assert likelihood(source, "-", stdin=target.read_bytes()).out == expected
    outcome = likelihood(source, "-", stdin=b"a\n")
    assert outcome.code == 2
    assert "source has 4 lines but standard input has 1" in outcome.error


def test_likelihood_scores_many_lines_in_chunks(likelihood, files, monkeypatch):
    monkeypatch.setattr("keras_seq_cli.likelihood._PAIRS", 3)
    once = likelihood(*files()).lines
    outcome = likelihood(*files(SOURCES * 4, TARGETS * 4))
    assert outcome.code == 0
    values = [[float(part) for part in line.split("\t")] for line in outcome.lines]
    for row, line in zip(values, once * 4, strict=True):
        assert row == pytest.approx([float(part) for part in line.split("\t")], abs=1e-5)
    # The error has the line number in the file, not in the chunk.
    outcome = likelihood(*files(["a"] * 5, [*"abcd", "1 2 " * 5000]))
    assert outcome.code == 2
    assert "target:5: a translation of " in outcome.error


def test_likelihood_reports_truncated_sources(likelihood, files):
    outcome = likelihood(*files(["5 " * 1000, "5"], ["5", "5"]), "--each", "corpus")
    assert json.loads(outcome.out)["truncated_sources"] == 1
    assert "1 sources truncated to data.max_source_length" in outcome.err


def test_likelihood_of_empty_text_is_an_error(likelihood, files):
    for lines in ([], ["", ""]):
        outcome = likelihood(*files(lines, lines), "--each", "corpus")
        assert (outcome.code, outcome.out) == (2, b"")
        assert "no text, expected at least one token" in outcome.error


def test_invalid_utf_8_is_reported_with_file_and_line(likelihood, files):
    outcome = likelihood(*files(["a", "b"], b"a\n\xff\n"))
    assert outcome.code == 2
    assert "target:2: invalid UTF-8" in outcome.error
