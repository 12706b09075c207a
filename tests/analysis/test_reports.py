"""Reports of runs: what is on the page, and the page in a browser."""

import json
import re
from collections import Counter

import pytest
from label_runs import labeled_lines, tagged_lines
from web_page import HOSTILE, browser, find, page_errors  # noqa: F401

import keras_seq
from keras_seq.analysis.reports.lines import Answers, report_lines
from keras_seq.run import Run


def data_of(page):
    """The data in a page."""
    (text,) = re.findall(r"^const data = (.*);$", page, re.MULTILINE)
    return json.loads(text)


def edits(a, b):
    """Levenshtein distance by its recursive definition, row by row."""
    row = list(range(len(b) + 1))
    for i, one in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (one != other))
    return row[-1]


@pytest.fixture(scope="module")
def data(tiny_run):
    return data_of(keras_seq.report(tiny_run, lines=40))


def test_scores_are_those_of_evaluate(tiny_run, data):
    lines = data["test"]["lines"]
    sources, references = Run.open(tiny_run).valid_lines()
    total = len(sources)
    chosen = [i * total // lines for i in range(lines)]
    evaluation = keras_seq.evaluate(
        tiny_run, [sources[i] for i in chosen], [references[i] for i in chosen]
    )
    shown = {name: (value, signature) for name, value, _, _, signature in data["test"]["scores"]}
    for metric in evaluation.metrics.values():
        assert shown[metric.name] == (f"{metric.value:.{metric.digits}f}", metric.signature)


def test_curves_are_those_of_the_log(tiny_run, data):
    log = [json.loads(line) for line in (tiny_run / "metrics.jsonl").read_text().splitlines()]
    loss, metric = data["curves"]
    for series in loss["series"]:
        expected = [[one["step"], one["loss"]] for one in log if one["kind"] == series["name"]]
        assert series["points"] == expected
    validations = [one for one in log if one["kind"] == "validation"]
    monitor = validations[-1]["monitor"]
    assert metric["series"][0]["points"] == [[one["step"], one[monitor]] for one in validations]


def test_worst_lines_have_the_most_edits_for_their_length(tiny_run, data):
    errors = [data["lines"][place]["error"] for place in data["worst"]]
    assert errors == sorted(errors, reverse=True) and errors
    for line in data["lines"]:
        wanted = edits(line["output"], line["reference"]) / len(line["reference"])
        assert line["error"] == pytest.approx(wanted, abs=1e-4)
    sources, references = Run.open(tiny_run).valid_lines()
    for line in data["lines"]:
        assert line["source"] == sources[line["number"] - 1]
        assert line["reference"] == references[line["number"] - 1]


def test_each_row_of_attention_sums_to_one(data):
    assert data["attention"]
    for line in data["attention"]:
        columns = len(line["source_tokens"])
        rows = [line["weights"][i : i + columns] for i in range(0, len(line["weights"]), columns)]
        assert len(rows) == len(line["tokens"])
        for row in rows:
            # Thousandths, each rounded.
            assert abs(sum(row) - 1000) <= columns


def test_wrong_labels_and_tags_are_counted(classifier_run, tagger_run):
    for run, lines in ((classifier_run, labeled_lines(60, 5)), (tagger_run, tagged_lines(60, 5))):
        sources, references = zip(*lines, strict=True)
        outputs = keras_seq.evaluate(run, sources, references, confidence=False).outputs
        counts = Counter()
        for reference, output in zip(references, outputs, strict=True):
            pairs = zip(reference.split(), output.split(), strict=True)
            counts.update((a, b) for a, b in pairs if a != b)
        shown = data_of(keras_seq.report(run, sources, references))["confusions"]
        assert {(a, b): count for a, b, count in shown} == dict(counts.most_common(20))


def test_lines_that_differ_in_spaces_are_wrong_lines(tiny_run):
    answers = Answers([1, 2], ["x", "y"], ["a b", "c d"], ["a b", "c  d"])
    shown = report_lines(Run.open(tiny_run), answers)
    assert shown["wrong"] == 1
    assert [shown["lines"][place]["number"] for place in shown["worst"]] == [2]


def test_command_writes_a_page_into_the_run(tiny_run, tmp_path, keras_seq_command):
    pairs = tmp_path / "test.tsv"
    pairs.write_text("1 May 2020\t2020-05-01\n3 June 2021\t2021-06-03\n")
    output = tmp_path / "page.html"
    outcome = keras_seq_command("report", tiny_run, "--pairs", pairs, "-o", output)
    assert outcome.code == 0, outcome.err
    data = data_of(output.read_text())
    assert data["test"]["name"] == "test.tsv" and data["test"]["lines"] == 2
    assert {line["source"] for line in data["lines"]} == {"1 May 2020", "3 June 2021"}
    wrong = keras_seq_command("report", tiny_run, "--labeled", pairs)
    assert wrong.code == 2 and "--pairs" in wrong.err


@pytest.mark.slow
def test_page_shows_text_as_text_and_runs_without_errors(
    tiny_run,
    tmp_path,
    browser,  # noqa: F811
):
    page = keras_seq.report(tiny_run, [HOSTILE, "1 May 2020"], ["2020-01-02", HOSTILE])
    page.save(tmp_path / "report.html")
    browser.get((tmp_path / "report.html").as_uri())
    assert page_errors(browser) == []
    assert browser.title == f"Report of {tiny_run.name}"
    cells = [cell.text for cell in find(browser, "#lines td.words")]
    assert HOSTILE in cells
    assert len(find(browser, "#curves figure")) == 2
    assert len(find(browser, "#lines tbody tr")) == 2
    assert find(browser, "#map rect.cell")
    names = [link.text for link in find(browser, "#contents a")]
    assert names == ["Training", "Scores", "Lines", "Attention"]
