"""`keras-seq classify` and `keras-seq tag`: output formats, scores and errors."""

import csv
import json

import pytest
from label_runs import labeled_lines, tagged_lines, write_lines

import keras_seq

TEXTS = ["rain today", "", "more snow"]
NAMED = ["ada king left london", "", "emmy\u00a0x  lives in new york"]


@pytest.fixture
def stdin():
    return lambda lines: "".join(f"{line}\n" for line in lines).encode()


def test_classify_writes_a_label_for_each_line(keras_seq_command, classifier_run, stdin):
    expected = keras_seq.Classifier.load(classifier_run).classify(TEXTS)
    outcome = keras_seq_command("classify", classifier_run, stdin=stdin(TEXTS))
    assert outcome.code == 0, outcome.err
    assert outcome.out.decode().splitlines() == [one.label for one in expected]
    tsv = keras_seq_command("classify", classifier_run, "--format", "tsv", stdin=stdin(TEXTS))
    rows = [line.split("\t") for line in tsv.out.decode().splitlines()]
    assert rows == [[one.label, f"{one.probability:.6f}"] for one in expected]
    jsonl = keras_seq_command("classify", classifier_run, "--format", "jsonl", stdin=stdin(TEXTS))
    for line, one in zip(jsonl.out.decode().splitlines(), expected, strict=True):
        said = json.loads(line)
        assert said["label"] == one.label and said["truncated"] is False
        assert [entry["label"] for entry in said["ranked"]] == [label for label, _ in one.ranked]


def test_classify_writes_the_best_labels_that_are_probable_enough(
    keras_seq_command, classifier_run, stdin
):
    expected = keras_seq.Classifier.load(classifier_run).classify(TEXTS)
    options = ["--format", "tsv", "--top-k", 2, "--min-probability", 0.2]
    outcome = keras_seq_command("classify", classifier_run, *options, stdin=stdin(TEXTS))
    assert outcome.code == 0, outcome.err
    for line, result in zip(outcome.out.decode().splitlines(), expected, strict=True):
        kept = [f"{label}\t{share:.6f}" for label, share in result.ranked[:2] if share >= 0.2]
        assert line == "\t".join(kept)
    for option in (["--top-k", 2], ["--min-probability", 0.5]):
        outcome = keras_seq_command("classify", classifier_run, "--labeled", "x", *option)
        assert outcome.code == 2 and "not with --labeled" in outcome.error


def test_classify_reports_truncated_lines(keras_seq_command, classifier_run, stdin):
    outcome = keras_seq_command("classify", classifier_run, stdin=stdin([*TEXTS, "rain " * 900]))
    assert outcome.code == 0, outcome.err
    assert "lines 1 to 4: 1 truncated to data.max_source_length tokens" in outcome.err
    assert len(outcome.out.splitlines()) == 4


def test_tag_writes_a_tag_for_each_word(keras_seq_command, tagger_run, stdin, tmp_path):
    expected = keras_seq.Tagger.load(tagger_run)(NAMED)
    outcome = keras_seq_command("tag", tagger_run, stdin=stdin(NAMED))
    assert outcome.code == 0, outcome.err
    assert outcome.out.decode().split("\n") == [*expected, ""]
    # `train --labeled` and `tag --labeled` can read the output of `--format tsv`.
    tsv = keras_seq_command("tag", tagger_run, "--format", "tsv", stdin=stdin(NAMED))
    (tmp_path / "tagged.tsv").write_bytes(tsv.out)
    again = keras_seq_command("tag", tagger_run, "--labeled", tmp_path / "tagged.tsv")
    assert "accuracy 1.000" in again.out.decode()
    jsonl = keras_seq_command("tag", tagger_run, "--format", "jsonl", stdin=stdin(NAMED))
    said = [json.loads(line) for line in jsonl.out.decode().splitlines()]
    assert said[2]["words"] == ["emmy\u00a0x", "lives", "in", "new", "york"]
    assert [" ".join(one["tags"]) for one in said] == expected


def test_classify_scores_a_labeled_file(keras_seq_command, classifier_run, tmp_path):
    lines = [*labeled_lines(30, 9), ("rain", "never heard of")]
    path = write_lines(tmp_path / "lines.tsv", lines)
    outcome = keras_seq_command("classify", classifier_run, "--labeled", path)
    assert outcome.code == 0, outcome.err
    table = outcome.out.decode()
    assert "31 labels" in table and "confusion:" in table and "never heard of" in table
    right = sum(
        answer == label
        for answer, (_, label) in zip(
            keras_seq.Classifier.load(classifier_run)([text for text, _ in lines]),
            lines,
            strict=True,
        )
    )
    assert table.startswith(f"accuracy {right / 31:.3f}")


def test_tag_scores_a_tagged_file_by_entity(keras_seq_command, tagger_run, tmp_path):
    path = write_lines(tmp_path / "lines.tsv", tagged_lines(20, 9))
    outcome = keras_seq_command("tag", tagger_run, "--labeled", path)
    assert outcome.code == 0, outcome.err
    table = outcome.out.decode()
    assert table.startswith("entities") and "LOC" in table and "confusion:" in table


def test_label_commands_score_chosen_columns_of_csv(
    keras_seq_command, classifier_run, tagger_run, tmp_path
):
    for command, run, lines, role in (
        ("classify", classifier_run, labeled_lines(20, 9), "label"),
        ("tag", tagger_run, tagged_lines(20, 9), "tags"),
    ):
        plain = write_lines(tmp_path / "lines.tsv", lines)
        with open(tmp_path / "lines.csv", "w", newline="") as file:
            csv.writer(file).writerows([("y", "n", "x"), *((b, 0, a) for a, b in lines)])
        expected = keras_seq_command(command, run, "--labeled", plain)
        columns = ["--columns", f"text=x,{role}=y"]
        found = keras_seq_command(command, run, "--labeled", tmp_path / "lines.csv", *columns)
        assert (found.code, found.out) == (0, expected.out), found.err
        outcome = keras_seq_command(command, run, *columns)
        assert outcome.code == 2 and "'--columns': needs --labeled" in outcome.err


@pytest.mark.parametrize("text", ["", "\t\n"])
def test_file_without_labels_is_named_in_the_error(
    keras_seq_command, classifier_run, tagger_run, tmp_path, text
):
    (tmp_path / "lines.tsv").write_text(text)
    for command, run in (("classify", classifier_run), ("tag", tagger_run)):
        outcome = keras_seq_command(command, run, "--labeled", tmp_path / "lines.tsv")
        assert outcome.code == 2 and "lines.tsv: " in outcome.error
        assert "expected at least one" in outcome.error


@pytest.mark.usefixtures("without_tensorflow")
def test_label_command_errors_are_reported_without_tensorflow(
    keras_seq_command, classifier_run, tagger_run, tmp_path
):
    outcome = keras_seq_command("classify", tagger_run)
    assert outcome.code == 2 and "expected 'classify': use `keras-seq tag" in outcome.error
    outcome = keras_seq_command("tag", classifier_run)
    assert outcome.code == 2 and "expected 'tag': use `keras-seq classify" in outcome.error
    outcome = keras_seq_command("classify", classifier_run, tmp_path / "none")
    assert outcome.code == 2 and "none" in outcome.error
    outcome = keras_seq_command("classify", classifier_run, "a", "--labeled", "b")
    assert outcome.code == 2 and "both TEXTS and --labeled" in outcome.err
