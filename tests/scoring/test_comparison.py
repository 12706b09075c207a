"""Confidence intervals and paired tests, compared with the sacreBLEU command."""

import json
import random
import re
import subprocess
import sys

import numpy as np
import pytest

from keras_seq.scoring import (
    METRICS,
    character_errors,
    compare,
    score,
    with_intervals,
    word_errors,
)

SAMPLES = 60


@pytest.fixture(scope="module")
def corpus():
    """References, and systems with a known rate of wrong words."""
    generator = random.Random(2)
    words = "a the dog cat man runs sees big red , . house tree and to".split()
    references = [
        " ".join(generator.choices(words, k=generator.randint(3, 15))) for _ in range(150)
    ]

    def system(share):
        return [
            " ".join(w if generator.random() >= share else "x" for w in line.split())
            for line in references
        ]

    return references, {"first": system(0.3), "like": system(0.3), "better": system(0.1)}


@pytest.fixture(scope="module")
def command(corpus, tmp_path_factory):
    """Returns a function that runs the sacreBLEU command on these systems."""
    folder = tmp_path_factory.mktemp("corpus")
    references, systems = corpus
    for name, lines in {"references": references, **systems}.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))

    def run(names, *options, form="json"):
        arguments = ["references", "-i", *names, "-m", *METRICS, "-w", "14", "-f", form, *options]
        done = subprocess.run(
            [sys.executable, "-m", "sacrebleu", *arguments],
            capture_output=True,
            check=True,
            text=True,
            cwd=folder,
        )
        return json.loads(done.stdout) if form == "json" else done.stdout

    return run


def table(text):
    """Parses the command's table: for each system, a list of numbers per metric."""
    rows = [line.split("│")[1:-1] for line in text.split("\n") if line.startswith("│")][1:]
    found = {}
    for name, *cells in rows:
        # The second line of a system contains its p values, but not its name.
        name = name.strip().removeprefix("Baseline: ") or list(found)[-1]
        numbers = [re.findall(r"\d+\.\d+", cell) for cell in cells]
        found[name] = [
            before + [float(number) for number in new]
            for before, new in zip(found.get(name, [[]] * len(cells)), numbers, strict=True)
        ]
    return found


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_compare_equals_the_sacrebleu_command(corpus, command, test):
    references, systems = corpus
    short = {"bootstrap": "bs", "randomization": "ar"}[test]
    options = [f"--paired-{short}", f"--paired-{short}-n", str(SAMPLES)]
    expected = table(command(systems, *options, form="text"))
    found = compare(systems, [references], test=test, samples=SAMPLES)
    assert list(found) == list(expected) == list(systems)
    for system, metrics in expected.items():
        for one, theirs in zip(found[system], metrics, strict=True):
            # The command rounds p to four places and prints no intervals for randomization tests.
            ours = [one.value, *([one.mean, one.interval] if test == "bootstrap" else [])]
            assert theirs[: len(ours)] == pytest.approx(ours, abs=1e-12)
            assert theirs[len(ours) :] == ([] if one.p_value is None else [round(one.p_value, 4)])


def test_confidence_intervals_equal_the_sacrebleu_command(corpus, command):
    references, systems = corpus
    lines = systems["first"]
    expected = command(["first"], "--confidence", "--confidence-n", str(SAMPLES))
    scores = score(lines, [references])
    found = with_intervals(scores, lines, [references], samples=SAMPLES)
    assert [one.name for one in found] == ["BLEU", "chrF2", "TER"]
    for one in found:
        (theirs,) = (entry for entry in expected if entry["name"] == one.name)
        assert theirs["score"] == pytest.approx(one.value, abs=1e-12)
        assert theirs["signature"] == one.signature
        assert theirs["confidence_mean"] == pytest.approx(one.mean, abs=1e-12)
        assert theirs["confidence_var"] == pytest.approx(one.interval, abs=1e-12)


def test_intervals_of_line_metrics_equal_resamples_by_hand(corpus):
    """Computes sacreBLEU's bootstrap intervals with the corpus-level functions."""
    references, systems = corpus
    lines = systems["better"]
    scores = score(lines, [references], metrics=["exact", "wer", "cer", "ter"])
    found = with_intervals(scores, lines, [references], samples=SAMPLES)
    assert [one.name for one in found] == ["TER", "WER", "CER", "EXACT"]
    generator = np.random.default_rng(12345)
    values = []
    for _ in range(SAMPLES):
        chosen = generator.integers(len(lines), size=len(lines))
        ours, theirs = [lines[i] for i in chosen], [references[i] for i in chosen]
        equal = sum(map(str.__eq__, ours, theirs)) / len(ours)
        values.append([word_errors(ours, theirs).rate, character_errors(ours, theirs).rate, equal])
    values = 100 * np.sort(values, axis=0)
    for one, of_metric in zip(found[1:], values.T, strict=True):
        assert one.value == vars(scores)[one.name.lower()].value
        assert one.mean == pytest.approx(of_metric.mean())
        assert one.interval == pytest.approx((of_metric[58] - of_metric[1]) / 2)
        assert f"|bs:{SAMPLES}|seed:12345|" in one.signature


def test_interval_of_exact_match_is_that_of_a_share():
    """For 400 of 1,000 lines, the normal approximation gives 1.96 sqrt(p q / n)."""
    lines, references = ["a"] * 1000, ["a"] * 400 + ["b"] * 600
    scores = score(lines, [references], metrics=["exact"])
    (found,) = with_intervals(scores, lines, [references])
    assert found.value == 40 and found.mean == pytest.approx(40, abs=0.3)
    assert found.interval == pytest.approx(196 * (0.4 * 0.6 / 1000) ** 0.5, rel=0.1)


def test_infinite_error_rates_have_no_interval():
    scores = score(["a", "b"], [["", ""]], metrics=["wer"])
    (found,) = with_intervals(scores, ["a", "b"], [["", ""]])
    assert (found.mean, found.interval) == (None, None) and found.text.startswith("WER = inf nrefs")


def test_compare_finds_a_better_system_significant_and_a_similar_one_not(corpus):
    references, systems = corpus
    for test in ("bootstrap", "randomization"):
        found = compare(systems, [references], test=test, samples=500, metrics=["bleu"])
        assert found["first"][0].p_value is None
        assert found["better"][0].p_value < 0.01
        assert found["like"][0].p_value > 0.05
        assert found["better"][0].interval > 0


def test_comparison_text_shows_interval_p_value_and_signature(corpus):
    references, systems = corpus
    found = compare(systems, [references], samples=20, metrics=["chrf"], lowercase=True)
    first, other = found["first"][0].text, found["better"][0].text
    assert first.startswith("chrF2 = ") and " ± " in first and "p = " not in first
    assert ", p = 0.0" in other and "case:lc" in other and "bs:20" in other


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"systems": {"one": ["a"]}}, "two or more"),
        ({"test": "coin"}, "unknown test 'coin', expected one of bootstrap, randomization"),
        ({"metrics": ["blue"]}, "unknown metric 'blue'"),
        ({"systems": {"one": ["a"], "two": ["a", "b"]}}, "2 hypotheses but 1 lines"),
    ],
    ids=str,
)
def test_invalid_compare_arguments_raise_value_error(change, said):
    arguments = {"systems": {"one": ["a"], "two": ["b"]}, "references": [["a"]]} | change
    systems, references = arguments.pop("systems"), arguments.pop("references")
    with pytest.raises(ValueError, match=said):
        compare(systems, references, **arguments)


def test_intervals_where_the_score_of_some_resamples_is_0():
    """sacreBLEU fails here because it averages a mix of Python and numpy floats."""
    hypotheses, references = ["abc", "xyz", "q"], ["abd", "uvw", "r"]
    scores = score(hypotheses, [references], metrics=["chrf"])
    [found] = with_intervals(scores, hypotheses, [references])
    # 1 of 27 resamples has only the first line; as 1/27 is above 2.5 %, its score is the upper
    # bound. Resamples without the first line score 0, which is the lower bound.
    most = score(["abc"], [["abd"]], metrics=["chrf"]).chrf.value
    assert found.interval == pytest.approx(most / 2)
    assert 0 < found.mean < most
    assert "bs:1000|seed:12345" in found.signature
