"""`keras-seq diagnose`: its table, JSON and HTML page, and its errors."""

import json

import pytest

from keras_seq.run import Run
from keras_seq.settings import load_settings

SOURCES = ["March 5, 2021", "", "5 mai 1999", "July"]
REFERENCES = ["2021-03-05", "", "1999-05-05", "x < y & \u2028 z"]


@pytest.fixture
def files(tmp_path):
    def write(source=SOURCES, reference=REFERENCES):
        for name, lines in (("source", source), ("reference", reference)):
            (tmp_path / name).write_bytes("".join(f"{line}\n" for line in lines).encode())
        return tmp_path / "source", tmp_path / "reference"

    return write


@pytest.mark.slow
@pytest.mark.usefixtures("without_tensorflow")
def test_diagnose_input_errors_are_reported_without_tensorflow(
    keras_seq_command, tiny_run, files, tmp_path
):
    paths = files()
    (tmp_path / "short").write_text("a\n")
    (tmp_path / "none").write_text("")
    for arguments, words in (
        (["absent", *paths], "absent: no such run directory"),
        ([tiny_run, "absent", paths[1]], "absent: no such file"),
        ([tiny_run, "-", "-"], "standard input cannot be both"),
        ([tiny_run, paths[0], tmp_path / "short"], "source has 4 lines but"),
        ([tiny_run, tmp_path / "none", tmp_path / "none"], "empty, expected at least one line"),
        ([tiny_run, *paths, "--beam-sizes", "5;10"], "expected beam sizes separated by commas"),
        ([tiny_run, *paths, "--beam-sizes", ""], "expected beam sizes separated by commas"),
        ([tiny_run, *paths, "--beam-sizes", "5,5"], "expected different beam sizes"),
        ([tiny_run, *paths, "--beam-sizes", "5,0"], "search.beam_size: received 0"),
        ([tiny_run, *paths, "--alpha", "-1"], "search.alpha: received -1"),
        ([tiny_run, *paths, "--repetition-penalty", "2"], "pass --repetition-penalty 1"),
        ([tiny_run, *paths, "--html", tmp_path / "no" / "page.html"], "cannot be written"),
        ([tiny_run, *paths, "--html", "-"], "--html: "),
    ):
        outcome = keras_seq_command("diagnose", *arguments)
        assert (outcome.code, outcome.out) == (2, b""), arguments
        assert words in outcome.error, arguments


@pytest.mark.usefixtures("without_tensorflow")
def test_diagnose_rejects_a_run_without_a_checkpoint(keras_seq_command, files, tmp_path):
    Run.create(tmp_path / "new", load_settings())
    outcome = keras_seq_command("diagnose", tmp_path / "new", *files())
    assert outcome.code == 2
    assert "no checkpoint, the training has not saved one yet" in outcome.error


@pytest.mark.slow
def test_diagnose_table_json_and_html_page_agree(keras_seq_command, tiny_run, files, tmp_path):
    paths = files()
    arguments = [
        "diagnose", tiny_run, *paths, "--beam-sizes", "2,1", "--max-length", "9", "--worst", "1",
    ]  # fmt: skip
    outcome = keras_seq_command(*arguments)
    assert outcome.code == 0
    printed = keras_seq_command(*arguments, "--json", "--html", tmp_path / "page.html")
    assert printed.code == 0
    found = json.loads(printed.out)
    assert found["run"] == tiny_run.name
    assert found["search"]["max_length"] == 9
    assert [one["beam"] for one in found["beams"]] == [2, 1]
    assert [line["source"] for line in found["lines"]] == SOURCES
    assert [line["reference"]["text"] for line in found["lines"]] == REFERENCES
    assert [line["verdict"] is None for line in found["lines"]] == [False, True, False, False]

    rows = {line.rpartition("  ")[2]: line.split() for line in outcome.lines if " %  " in line}
    totals = found["totals"]
    for meaning, key in (
        ("the model prefers the reference", "search_errors"),
        ("the model prefers its output", "model_errors"),
        ("it prefers neither", "ties"),
        ("the source is blank", "not_judged"),
        ("a wider beam finds a higher objective", "wider_is_better"),
    ):
        count, share = rows[meaning][2 if key != "ties" else 1 :][:2]
        if key == "wider_is_better":
            count, share = rows[meaning][3:5]
        assert int(count) == totals[key]
        assert share == f"{25 * totals[key]:.1f}"
    beams = [line.split() for line in outcome.lines if line.split()[:1] in (["2"], ["1"])]
    for cells, one in zip(beams, found["beams"], strict=True):
        assert cells[1:3] == [f"{one['bleu']['value']:.2f}", f"{one['objective']:.4f}"]
    assert found["oracle_bleu"]["signature"] in outcome.out.decode()
    for kind in ("search", "model"):
        lines = [line for line in found["lines"] if line["verdict"] == f"{kind} error"]
        if lines:
            line = max(lines, key=lambda line: abs(line["margin"]))
            at = outcome.lines.index(
                f"The clearest {kind} errors (objective of reference and output)"
            )
            assert outcome.lines[at + 1].split(";")[0] == f"line {line['number']}"
            assert outcome.lines[at + 3].endswith(line["reference"]["text"])

    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f'"run": "{tiny_run.name}"' in page and "x \\u003c y & \\u2028 z" in page

    # Read the references from standard input.
    arguments[3] = "-"
    outcome = keras_seq_command(*arguments, "--json", stdin=paths[1].read_bytes())
    assert outcome.code == 0
    again = json.loads(outcome.out)
    for one in (again, found):
        for line in one["lines"]:
            del line["margin"]
    assert [line["verdict"] for line in again["lines"]] == [
        line["verdict"] for line in found["lines"]
    ]
    assert again["totals"] == totals


def test_diagnose_rejects_a_reference_too_long_to_score(keras_seq_command, tiny_run, files):
    paths = files(["a", "b"], ["a", "1 2 " * 5000])
    outcome = keras_seq_command("diagnose", tiny_run, *paths, "--beam-sizes", "1")
    assert outcome.code == 2
    assert f"{paths[1]}:2: a translation of " in outcome.error
