"""Intervals and tests against sacreBLEU's own command, and against systems that are known."""

import json
import random
import re
import subprocess
import sys

import pytest

from keras_seq.scoring import METRICS, compare, score, with_intervals

SAMPLES = 60


@pytest.fixture(scope="module")
def corpus():
    """References, and systems in which each word is wrong so often."""
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
    """What sacreBLEU's command prints for these systems."""
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
    """The cells of the command's table: for each system its metrics' numbers, in their order."""
    rows = [line.split("│")[1:-1] for line in text.split("\n") if line.startswith("│")][1:]
    found = {}
    for name, *cells in rows:
        # The second line of a system holds the values of p, and no name.
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
            # It rounds p to four places; with trials it gives no intervals.
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
