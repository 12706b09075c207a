"""`keras-seq score`: metrics, confidence intervals, paired tests and errors."""

import json
import os
import re
import subprocess
import sys

import pytest
import sacrebleu
from restored_plugins import restored_plugins

HYPOTHESES = ["The dog runs fast .", "A cat's sleeping\u2028here", "He said: yes!"]
REFERENCES = ["The dog is running fast.", "A cat is sleeping\u2028here", "He said yes."]
OTHERS = ["The dog runs quickly.", "The cat sleeps\u2028here", "He said: yes!"]

pytestmark = pytest.mark.usefixtures("without_tensorflow")


@pytest.fixture
def files(tmp_path):
    def write(**contents: bytes | list[str]) -> list:
        paths = []
        for name, content in contents.items():
            if isinstance(content, list):
                content = "".join(f"{line}\n" for line in content).encode()
            (tmp_path / name).write_bytes(content)
            paths.append(tmp_path / name)
        return paths

    return write


def test_score_output_equals_sacrebleu(keras_seq_command, files):
    hypotheses, first, second = files(h=HYPOTHESES, a=REFERENCES, b=OTHERS)
    outcome = keras_seq_command("score", hypotheses, "--reference", first, "--reference", second)
    references = [REFERENCES, OTHERS]
    expected = [
        ("BLEU", sacrebleu.corpus_bleu(HYPOTHESES, references).score),
        ("chrF2", sacrebleu.corpus_chrf(HYPOTHESES, references).score),
        ("TER", sacrebleu.corpus_ter(HYPOTHESES, references).score),
    ]
    assert outcome.code == 0
    assert len(outcome.lines) == 3
    for line, (name, value) in zip(outcome.lines, expected, strict=True):
        assert line.startswith(f"{name} = {value:.2f} nrefs:2|")
        assert f"version:{sacrebleu.__version__}" in line
    assert "tok:13a" in outcome.lines[0]


def test_score_prints_only_the_requested_metric(keras_seq_command, files):
    hypotheses, references = files(h=HYPOTHESES, r=REFERENCES)
    arguments = ["score", hypotheses, "-r", references, "-m", "chrf"]
    assert [line[:5] for line in keras_seq_command(*arguments).lines] == ["chrF2"]


@pytest.mark.parametrize(
    "options", [["-m", "wer,exact,chrf"], ["-m", "wer, exact", "-m", "chrf,wer"]]
)
def test_metrics_may_have_commas_between_them(keras_seq_command, files, options):
    hypotheses, references = files(h=["a b", "c"], r=["a x", "c"])
    outcome = keras_seq_command("score", hypotheses, "-r", references, *options)
    chrf = sacrebleu.corpus_chrf(["a b", "c"], [["a x", "c"]]).score
    values = [("WER", "33.33"), ("EXACT", "50.00"), ("chrF2", f"{chrf:.2f}")]
    assert [tuple(line.split()[:3:2]) for line in outcome.lines] == values


def test_every_metric_has_an_interval(keras_seq_command, files):
    hypotheses, references = files(h=HYPOTHESES * 9, r=REFERENCES * 9)
    metrics = "exact,cer,wer,chrf,bleu,ter"
    options = ["-m", metrics, "--confidence", "--samples", 50, "--json"]
    outcome = keras_seq_command("score", hypotheses, "-r", references, *options)
    (system,) = json.loads(outcome.out)["systems"]
    found = {one["name"]: one for one in system["scores"]}
    assert list(found) == ["EXACT", "CER", "WER", "chrF2", "BLEU", "TER"]
    # No hypothesis equals its reference, so exact match is 0 in every resample.
    assert (found.pop("EXACT")["interval"], outcome.code) == (0.0, 0)
    assert all(one["interval"] > 0 and "bs:50" in one["signature"] for one in found.values())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-m", "bleu,blue"], "unknown metric 'blue', expected one of exact, cer, wer, chrf, bleu"),
        (["-m", "bleu,"], "unknown metric ''"),
        (["-m", "bleu,exact", "--paired", "bootstrap"], "no paired test of 'exact'"),
        (["--tokenize", "13b"], "unknown tokenizer '13b', expected one of 13a, "),
    ],
)
def test_metric_that_cannot_be_computed_is_one_line(keras_seq_command, files, options, words):
    one, two, references = files(one=HYPOTHESES, two=OTHERS, r=REFERENCES)
    outcome = keras_seq_command("score", one, two, "-r", references, *options)
    assert (outcome.code, outcome.out) == (2, b"")
    assert outcome.error.startswith(words)


def test_metric_of_a_plugin_is_scored(keras_seq_command, files, tmp_path):
    (tmp_path / "shared.py").write_text(
        "import keras_seq\n"
        "@keras_seq.register_metric('same-length', label='same length', digits=1)\n"
        "def same(answers, references):\n"
        "    return 100 * sum(map(lambda a, b: len(a) == len(b), answers, references)) / 4\n"
        "@keras_seq.register_metric('first-letters')\n"
        "def first(answers, references):\n"
        "    return sum(a[0] == b[0] for a, b in zip(answers, references))\n"
    )
    hypotheses, references = files(h=["a b", "c", "d", "E"], r=["x y", "ce", "d", "e"])
    with restored_plugins():
        command = ["score", hypotheses, "-r", references, f"--import={tmp_path / 'shared.py'}"]
        outcome = keras_seq_command(*command, "-m", "same-length,exact,first-letters")
        values = [line.split(" nrefs")[0].split(" lines:")[0] for line in outcome.lines]
        assert values == ["same length = 75.0", "EXACT = 25.00", "first-letters = 2.00"]
        outcome = keras_seq_command(*command, "-m", "first-letters", "--lowercase", "--json")
        (system,) = json.loads(outcome.out)["systems"]
        assert [one["value"] for one in system["scores"]] == [3.0]
        options = ["-m", "same-length", "--confidence", "--samples", 40]
        assert re.match(
            r"same length = 75.0 \([\d.]+ ± [\d.]+\) ",
            keras_seq_command(*command, *options).lines[0],
        )
        for options, words in (
            (["-r", references], "--reference: received 2 files, expected one"),
            ([hypotheses.parent / "r", "--paired", "bootstrap"], "not with the metric 'same-leng"),
        ):
            refused = keras_seq_command(*command, "-m", "same-length", *options)
            assert (refused.code, refused.out) == (2, b"") and words in refused.error


def test_score_reads_hypotheses_from_standard_input(keras_seq_command, files):
    hypotheses, references = files(h=HYPOTHESES, r=REFERENCES)
    outcome = keras_seq_command("score", "-", "-r", references, stdin=hypotheses.read_bytes())
    assert outcome.out == keras_seq_command("score", hypotheses, "-r", references).out


@pytest.mark.parametrize(
    ("hypotheses", "references", "words"),
    [
        (["a"], ["a", "b"], "h has 1 lines but {r} has 2"),
        (["a", "b"], ["a"], "h has 2 lines but {r} has 1"),
        ([], ["a"], "h: empty"),
        (["a"], [], "{r}: empty"),
        (["a", "b"], b"a\n\xffb\n", "{r}:2: invalid UTF-8"),
        (b"\xe4\n", ["a"], "h:1: invalid UTF-8"),
    ],
)
def test_score_rejects_mismatched_empty_or_invalid_text(
    keras_seq_command, files, hypotheses, references, words
):
    hypothesis_file, reference_file = files(h=hypotheses, r=references)
    outcome = keras_seq_command("score", hypothesis_file, "--reference", reference_file)
    assert (outcome.code, outcome.out) == (2, b"")
    assert words.format(r=reference_file) in outcome.error


def test_score_rejects_a_second_reference_of_another_length(keras_seq_command, files):
    hypotheses, first, second = files(h=HYPOTHESES, a=REFERENCES, b=[*OTHERS, "more"])
    outcome = keras_seq_command("score", hypotheses, "-r", first, "-r", second)
    assert outcome.code == 2
    assert "h has 3 lines but" in outcome.error and "b has 4" in outcome.error


def test_score_rejects_missing_files_and_unknown_metrics(keras_seq_command, files, tmp_path):
    (hypotheses,) = files(h=HYPOTHESES)
    for reference, words in (
        (tmp_path / "absent", "absent: no such file"),
        (tmp_path, "is a directory"),
    ):
        outcome = keras_seq_command("score", hypotheses, "-r", reference)
        assert (outcome.code, words in outcome.error) == (2, True)
    outcome = keras_seq_command("score", "-", "-r", "-")
    assert (outcome.code, "read only once" in outcome.error) == (2, True)
    outcome = keras_seq_command("score", hypotheses, "-r", hypotheses, "-m", "blue")
    assert (outcome.code, "'blue'" in outcome.error) == (2, True)


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_closed_output_pipe_is_not_an_error(files):
    hypotheses, references = files(h=HYPOTHESES, r=REFERENCES)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        result = subprocess.run(
            [sys.executable, "-m", "keras_seq", "score", hypotheses, "-r", references],
            stdout=pipe,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (result.returncode, result.stderr) == (0, b"")


def test_score_prints_a_line_for_each_system(keras_seq_command, files):
    one, two, references = files(one=HYPOTHESES, two=OTHERS, r=REFERENCES)
    outcome = keras_seq_command("score", one, two, "-r", references, "-m", "bleu")
    expected = [sacrebleu.corpus_bleu(lines, [REFERENCES]).score for lines in (HYPOTHESES, OTHERS)]
    assert [line.split("\t")[0] for line in outcome.lines] == [str(one), str(two)]
    for line, value in zip(outcome.lines, expected, strict=True):
        assert line.split("\t")[1].startswith(f"BLEU = {value:.2f} nrefs:1|")


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_paired_test_gives_p_values_for_later_systems(keras_seq_command, files, test):
    one, two, references = files(one=HYPOTHESES * 9, two=OTHERS * 9, r=REFERENCES * 9)
    options = ["-m", "bleu", "--paired", test, "--samples", 50]
    outcome = keras_seq_command("score", one, two, "-r", references, *options)
    assert "p = " not in outcome.lines[0] and "p = " in outcome.lines[1]
    found = json.loads(
        keras_seq_command("score", one, two, "-r", references, *options, "--json").out
    )
    first, second = found["systems"]
    assert (first["system"], second["system"]) == (str(one), str(two))
    assert first["scores"][0]["p_value"] is None and 0 < second["scores"][0]["p_value"] <= 1
    assert second["scores"][0]["value"] == sacrebleu.corpus_bleu(OTHERS * 9, [REFERENCES * 9]).score


def test_paired_test_warns_about_identical_systems(keras_seq_command, files):
    one, two, references = files(one=HYPOTHESES, two=HYPOTHESES, r=REFERENCES)
    options = ["-m", "bleu", "--paired", "bootstrap", "--samples", 50]
    outcome = keras_seq_command("score", one, two, "-r", references, *options)
    assert outcome.err == f"{two}: same lines as {one}, so its p value is meaningless\n"


def test_score_json_has_unrounded_values(keras_seq_command, files):
    hypotheses, references = files(h=HYPOTHESES, r=REFERENCES)
    outcome = keras_seq_command("score", hypotheses, "-r", references, "--json")
    (system,) = json.loads(outcome.out)["systems"]
    values = {one["name"]: one["value"] for one in system["scores"]}
    assert values == {
        "BLEU": sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score,
        "chrF2": sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score,
        "TER": sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score,
    }


def test_score_prints_confidence_intervals(keras_seq_command, files):
    hypotheses, references = files(h=HYPOTHESES * 9, r=REFERENCES * 9)
    options = ["-m", "chrf", "--confidence", "--samples", 40]
    (line,) = keras_seq_command("score", hypotheses, "-r", references, *options).lines
    assert line.startswith("chrF2 = ") and " ± " in line and "bs:40" in line


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--paired", "bootstrap"], "expected two or more"),
        (["--samples", "5"], "needs --paired or --confidence"),
        (["--tokenize", "klingon"], "unknown tokenizer 'klingon'"),
    ],
)
def test_score_rejects_incompatible_options(keras_seq_command, files, options, words):
    hypotheses, references = files(h=HYPOTHESES, r=REFERENCES)
    outcome = keras_seq_command("score", hypotheses, "-r", references, *options)
    assert outcome.code == 2 and words in outcome.err


def test_score_rejects_a_system_named_twice(keras_seq_command, files):
    hypotheses, references = files(h=HYPOTHESES, r=REFERENCES)
    outcome = keras_seq_command("score", hypotheses, hypotheses, "-r", references)
    assert (outcome.code, "same file of hypotheses twice" in outcome.error) == (2, True)


def test_score_computes_word_and_character_error_rates(keras_seq_command, files):
    hypotheses, references = files(h=["one too", "x"], r=["one two", "x"])
    outcome = keras_seq_command("score", hypotheses, "-r", references, "-m", "wer", "-m", "cer")
    assert [line[:11] for line in outcome.lines] == ["WER = 33.33", "CER = 12.50"]
    outcome = keras_seq_command(
        "score", hypotheses, "-r", references, "-m", "wer", "--confidence", "--samples", 9
    )
    assert re.match(r"WER = 33\.33 \(\d+\.\d\d ± \d+\.\d\d\) nrefs:1\|bs:9\|", outcome.lines[0])
    outcome = keras_seq_command(
        "score", hypotheses, references, "-r", references, "-m", "wer", "--paired", "bootstrap"
    )
    assert (outcome.code, "no paired test of 'wer'" in outcome.error) == (2, True)
