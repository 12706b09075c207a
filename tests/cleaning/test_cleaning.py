"""Removal of pairs: injected noise goes, clean pairs stay, and the commands report both."""

import gzip
import itertools
import json
import math
import random
import tracemalloc
from collections import Counter

import numpy as np
import pytest

from keras_seq.cleaning import RULES, Cleaner
from keras_seq.cleaning import corpus_statistics as statistics_module
from keras_seq.cleaning.character_model import CharacterModel, letters_of
from keras_seq.cleaning.corpus_statistics import CorpusStatistics
from keras_seq.text import Example, InputError, PairFiles

PEOPLE = {
    "a young man": "ein junger Mann",
    "two women": "zwei Frauen",
    "the old teacher": "der alte Lehrer",
    "three children": "drei Kinder",
    "a girl in a red coat": "ein Mädchen in einem roten Mantel",
    "the firefighters": "die Feuerwehrleute",
}
ACTIONS = {
    "sitting on a bench": "auf einer Bank sitzend",
    "playing with a ball": "mit einem Ball spielend",
    "reading a newspaper": "eine Zeitung lesend",
    "running through the woods": "durch den Wald laufend",
    "looking at the water": "auf das Wasser blickend",
}
PLACES = {
    "in the park": "im Park",
    "near the river": "in der Nähe des Flusses",
    "behind the house": "hinter dem Haus",
    "at the station": "am Bahnhof",
    "on a street in the city": "auf einer Straße in der Stadt",
    "by the sea in summer": "im Sommer am Meer",
}
TIMES = {
    "": "",
    "in the morning": "am Morgen",
    "on a sunny day": "an einem sonnigen Tag",
    "after work": "nach der Arbeit",
    "during the match": "während des Spiels",
    "at night": "in der Nacht",
}
CLEAN = [
    tuple(" ".join(part[side] for part in parts if part[side]) for side in (0, 1))
    for parts in itertools.product(PEOPLE.items(), ACTIONS.items(), PLACES.items(), TIMES.items())
]
ENGLISH, GERMAN = (list(side) for side in zip(*CLEAN, strict=True))
FRENCH = "le chat est assis sur le tapis rouge devant la cheminée"
NOISE = {
    "empty": [("a man", ""), ("  ", "ein Mann")],
    "damaged": [("a m\ufffdn in the park", "ein Mann im Park"), ("a man", "ein\x07 Mann")],
    "length": [("man " * 300, "Mann " * 300)],
    "script": [("a young man in the park", "молодой человек в парке")],
    "language": [
        (GERMAN[3], ENGLISH[3]),
        (ENGLISH[5], ENGLISH[71]),
        (GERMAN[9], GERMAN[50]),
        (ENGLISH[8], ENGLISH[8]),
        (ENGLISH[20], FRENCH),
    ],
    "ratio": [(ENGLISH[4], " ".join(GERMAN[:4])), (ENGLISH[11] + " " + ENGLISH[12], "Mann")],
    "copy": [("Anna Berg", "Anna Berg"), ("New York", "New York.")],
    "held-out": [("one dog", "ein Hund"), ("a man in the park", "ein Mann sitzend im Park")],
    "duplicate": [CLEAN[7], (f"{CLEAN[8][0]} ", CLEAN[8][1])],
}
HELD_OUT = ["one  dog", "ein Mann sitzend im Park", "ein Hund"]


@pytest.fixture
def noisy(tmp_path):
    """A file with clean pairs, then noise; the noise would be a duplicate if it were first."""
    pairs = [*CLEAN, *itertools.chain.from_iterable(NOISE.values())]
    path = tmp_path / "noisy.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    return path


def reasons(path, **options):
    return [reason for _, reason in Cleaner(PairFiles(pairs=str(path)), **options).read()]


def test_each_rule_removes_its_noise_and_no_clean_pair(noisy):
    found = reasons(noisy, held_out=HELD_OUT)
    assert found[: len(CLEAN)] == [None] * len(CLEAN)
    expected = [name for name, pairs in NOISE.items() for _ in pairs]
    assert found[len(CLEAN) :] == expected
    assert set(expected) == set(RULES)


@pytest.mark.parametrize("name", [name for name in RULES if name != "empty"])
def test_a_rule_that_is_not_applied_removes_nothing(noisy, name):
    assert name not in reasons(noisy, skip=[name], held_out=HELD_OUT)


def test_noise_of_a_fifth_of_the_corpus_is_found(tmp_path):
    """The statistics come from the noisy corpus itself."""
    generator = random.Random(1)
    swapped = [(target, source) for source, target in generator.sample(CLEAN, 120)]
    foreign = [(source, generator.choice(ENGLISH)) for source, _ in generator.sample(CLEAN, 120)]
    path = tmp_path / "pairs.tsv"
    pairs = [*swapped, *foreign, *CLEAN]
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    found = reasons(path)
    assert found[:240] == ["language"] * 240
    assert found[240:] == [None] * len(CLEAN)


def test_copies_stay_where_they_are_usual(tmp_path):
    """As in the forms of words, many of which equal the dictionary form."""
    pairs = [(word, word) for word in "berg tal haus wald see fluss".split()]
    pairs += [(f"wort{a}", f"worte{a}") for a in "bcdefghijk"]
    path = tmp_path / "forms.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    assert reasons(path) == [None] * len(pairs)


def test_japanese_text_may_be_in_any_of_its_scripts(tmp_path):
    animals = {"cat": "猫", "dog": "犬", "bird": "鳥", "horse": "馬", "cow": "牛"}
    pairs = [
        (f"{word} {number} eats an apple", f"{name}{number}は林檎を食べます")
        for word, name in animals.items()
        for number in range(9)
    ]
    pairs += [("a tennis player", "テニスプレーヤー"), ("good morning", "おはようございます")]
    pairs += [("the weather is fine", "хорошая погода")]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    assert reasons(path) == [None] * 47 + ["script"]


def test_names_in_the_script_of_the_source_stay(tmp_path):
    pairs = [(f"cat {number} eats", f"猫{number}は林檎を食べます") for number in range(40)]
    pairs += [("he bought an iPhone", "iPhone を 買う"), ("he bought it", "kaimasu")]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    assert reasons(path) == [None] * 41 + ["script"]


def test_corrections_in_the_same_language_stay(tmp_path):
    """Each text has a twin on the other side, which must not make the other side likelier."""
    path = tmp_path / "pairs.tsv"
    generator = random.Random(2)
    words = ["".join(generator.choices("aeioubdglmnrst", k=6)) for _ in range(900)]
    lines = [" ".join(generator.sample(words, 5)) for _ in range(250)]
    path.write_text("".join(f"{line[1:]}\t{line}\n" for line in lines))
    assert reasons(path) == [None] * len(lines)


def test_rules_that_do_not_suit_the_corpus_are_named(tmp_path):
    path = tmp_path / "pairs.tsv"
    for count, expected in (
        (150, "language: not applied, which needs 200 pairs"),
        (500, "language: third languages are not looked for, which needs 1,000 pairs"),
        (1000, None),
    ):
        path.write_text("".join(f"{a}\t{b}\n" for a, b in CLEAN[:count]))
        notes = Cleaner(PairFiles(pairs=str(path))).notes
        assert notes == ([expected] if expected else [])
    path.write_text("".join(f"{a}\t{a}\n" for a in ENGLISH))
    (note,) = Cleaner(PairFiles(pairs=str(path))).notes
    assert note == "copy: not applied, because 100% of the pairs are copies"


def test_marks_of_letters_count_as_letters():
    assert letters_of("कि, का 7!") == "कि का"
    assert not statistics_module.is_copy("दिन", "दान")
    assert statistics_module.is_copy("दिन", "दिन।")


def test_lines_of_one_language_are_cleaned(tmp_path):
    path = tmp_path / "text"
    path.write_text("".join(f"{line}\n" for line in [*GERMAN, GERMAN[3], "", "Добрый день"]))
    cleaner = Cleaner(PairFiles(text=str(path)), held_out=[GERMAN[0]])
    kept = [example.target for example, reason in cleaner.read() if reason is None]
    assert kept == GERMAN[1:]
    assert cleaner.removed == {"held-out": 1, "duplicate": 1, "empty": 1, "script": 1}
    assert cleaner.kept == len(GERMAN) - 1


def test_character_model_computes_smoothed_trigram_probabilities():
    texts = ["Das Haus, 7 Häuser!", "das Tal", "ein Hund"]
    model = CharacterModel()
    model.add(texts[:2])
    model.add(texts[2:])
    size = 30

    def expected(text, counted):
        trigrams, contexts = Counter(), Counter()
        for one in counted:
            padded = f"\x02\x02{one}\x03"
            for i in range(len(padded) - 2):
                trigrams[padded[i : i + 3]] += 1
                contexts[padded[i : i + 2]] += 1
        padded = f"\x02\x02{text}\x03"
        parts = [padded[i : i + 3] for i in range(len(padded) - 2)]
        return sum(
            math.log((trigrams[part] + 0.1) / (contexts[part[:2]] + 0.1 * size)) for part in parts
        ) / len(parts)

    plain = ["das haus häuser", "das tal", "ein hund"]
    assert [letters_of(text) for text in texts] == plain
    others = ["le chat", "", "DAS HAUS"]
    np.testing.assert_allclose(
        model.log_probabilities(others, size),
        [expected(text.lower(), plain) for text in others],
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        model.log_probabilities(texts, size, leave_out=True),
        [expected(plain[i], plain[:i] + plain[i + 1 :]) for i in range(3)],
        rtol=1e-12,
    )
    assert model.log_probabilities([], size).shape == (0,)


def test_memory_does_not_grow_with_the_length_of_lines():
    lines = ["ab " * 1_000_000] * 4
    model = CharacterModel()
    tracemalloc.start()
    try:
        model.add(lines)
        values = model.log_probabilities(lines, 30, leave_out=True)
        # The tables have 67 MB; all letters at once would take a gigabyte.
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    assert np.ptp(values) == 0


def test_lengths_are_compared_as_gale_and_church_do():
    pairs = [Example("a" * n, "b" * (2 * n + extra)) for n in (4, 9, 16) for extra in (-3, 0, 3)]
    statistics = CorpusStatistics(pairs)
    assert statistics.ratio == 2
    distances = [
        (len(pair.target) - 2 * len(pair.source)) / len(pair.source) ** 0.5 for pair in pairs
    ]
    deviation = np.median(np.abs(distances - np.median(distances))) / 0.6745
    assert statistics.length_deviation("a" * 25, "b" * 80) == pytest.approx(30 / 5 / deviation)


def test_statistics_come_from_a_sample_of_a_large_corpus(monkeypatch):
    monkeypatch.setattr(statistics_module, "_MAX_PAIRS", 10)
    examples = [Example("a" * (number + 1), "b") for number in range(100)]
    read = []
    monkeypatch.setattr(
        statistics_module, "SideStatistics", lambda lines: read.append(lines) or Side()
    )
    assert CorpusStatistics(iter(examples)).num_examples == 13
    lengths = [len(line) for line in read[1]]
    assert lengths == list(range(1, 101, 8))


class Side:
    model = CharacterModel()

    def measure(self, lines, num_letters):
        pass


def test_wrong_input_is_one_clear_line(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(" \tein Mann\n")
    with pytest.raises(InputError, match=r"pairs.tsv: no pair has text"):
        Cleaner(PairFiles(pairs=str(path)))
    with pytest.raises(InputError, match="rule 'lenght': expected one of damaged, length, "):
        Cleaner(PairFiles(pairs=str(path)), skip=["lenght"])


def test_command_writes_kept_and_removed_lines_and_a_report(noisy, keras_seq_command):
    held_out = noisy.with_name("test.tsv")
    held_out.write_text("one  dog\tein Mann sitzend im Park\n")
    kept, gone = noisy.with_name("clean.tsv.gz"), noisy.with_name("gone.tsv")
    arguments = ["--pairs", noisy, "--held-out", held_out, "--samples", 1]
    outcome = keras_seq_command("clean", *arguments, "-o", kept, "--removed", gone)
    assert outcome.code == 0, outcome.err
    assert gzip.decompress(kept.read_bytes()).decode().split("\n")[:-1] == [
        f"{source}\t{target}" for source, target in CLEAN
    ]
    expected = [f"{name}\t{a}\t{b}" for name, pairs in NOISE.items() for a, b in pairs]
    assert gone.read_text().split("\n")[:-1] == expected
    counts = {line.split()[0]: line.split()[1] for line in outcome.lines[: len(RULES)]}
    assert counts == {name: str(len(pairs)) for name, pairs in NOISE.items()}
    total = len(CLEAN) + len(expected)
    shown = f"kept {len(CLEAN):,} {len(CLEAN) / total:.2%} of {total:,} pairs"
    assert " ".join(outcome.lines[len(RULES)].split()) == shown
    assert "\n".join(outcome.lines).count("for example") == len(RULES)


def test_dry_run_reports_as_json_and_writes_nothing(noisy, keras_seq_command):
    before = sorted(noisy.parent.iterdir())
    outcome = keras_seq_command("clean", "--pairs", noisy, "--dry-run", "--json", "--samples", 2)
    report = json.loads(outcome.out)
    assert report["removed"]["language"] == 5
    assert report["samples"]["language"] == [list(pair) for pair in NOISE["language"][:2]]
    assert report["kept"] == len(CLEAN) + len(NOISE["held-out"])
    assert sorted(noisy.parent.iterdir()) == before


def test_parallel_files_become_one_file_of_pairs(tmp_path, keras_seq_command):
    for name, lines in (("en", ENGLISH), ("de", GERMAN)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines).replace("in ", "in\t"))
    output = tmp_path / "clean.tsv"
    files = ["--source", tmp_path / "en", "--target", tmp_path / "de"]
    assert keras_seq_command("clean", *files, "-o", output).code == 0
    assert output.read_text() == "".join(f"{source}\t{target}\n" for source, target in CLEAN)


def test_features_are_kept_and_no_part_of_the_source(tmp_path, keras_seq_command):
    rows = [f"{stem}t\tV;{tense}\t{stem}t" for stem in ("hi", "cu", "se") for tense in "ABC"]
    wrong = ["hit\tV;A\thit", " \tV;A\tx", "put\tV;\ufffd\tput", "let\tV;A\tlet"]
    (tmp_path / "forms.tsv").write_text("".join(f"{row}\n" for row in rows + wrong))
    (tmp_path / "test.tsv").write_text("let\tV;B\tlet\n")
    output, removed = tmp_path / "clean.tsv", tmp_path / "gone.tsv"
    files = ["--pairs", tmp_path / "forms.tsv", "--columns", "source=1,features=2,target=3"]
    files += ["--held-out", tmp_path / "test.tsv", "-o", output, "--removed", removed]
    assert keras_seq_command("clean", *files).code == 0
    rows = [row.split("\t") for row in rows]
    assert output.read_text() == "".join(f"{word}\t{form}\t{tag}\n" for word, tag, form in rows)
    reasons = [line.split("\t")[0] for line in removed.read_text().splitlines()]
    assert reasons == ["duplicate", "empty", "damaged", "held-out"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--pairs", "NOISY"], "'--output': expected a file, or --dry-run"),
        (["--pairs", "NOISY", "-o", "x", "--dry-run"], "'--output': not with --dry-run"),
        (["--pairs", "NOISY", "--dry-run", "--removed", "x"], "'--removed': not with --dry-run"),
        (["--pairs", "NOISY", "--dry-run", "--skip", "x"], "rule 'x': expected one of damaged, "),
        (["--pairs", "NOISY", "--dry-run", "--skip", "empty"], "rule 'empty': expected one of"),
        (["--pairs", "NOISY", "-o", "NOISY"], "noisy.tsv: would replace "),
        (["--pairs", "NOISY", "-o", "x", "--removed", "x"], "x: would replace x: name another"),
        (["--pairs", "NOISY", "-o", "x", "--removed", "NOISY"], "noisy.tsv: would replace "),
        (["--pairs", "NOISY", "-o", "-"], "--output: received -, expected the name of a file"),
        (["--text", "NOISY", "--dry-run", "--columns", "source=1,target=2"], "needs --pairs"),
        (["--pairs", "NOISY", "--dry-run", "--held-out", "t.csv"], "t.csv: expected lines or tab-"),
        (["--pairs", "none.tsv", "--dry-run"], "none.tsv: "),
        (["--dry-run"], "--target without --source"),
        (["--pairs", "NOISY", "--dry-run", "--held-out", "none"], "none: "),
        (["--pairs", "NOISY", "-o", "none/x"], "none/x: cannot be written"),
        (["--pairs", "-", "--dry-run"], "standard input"),
        (
            ["--pairs", "NOISY", "-o", "x", "--max-characters", "1"],
            "no pair is left; the rules that removed: length, empty, damaged",
        ),
        (
            ["--pairs", "NOISY", "--dry-run", "--columns", "source=1,target=2,target_language=3"],
            "--columns: received target_language, expected source, target or features: the rules",
        ),
    ],
)
def test_wrong_options_are_one_clear_line(noisy, arguments, error, keras_seq_command, monkeypatch):
    monkeypatch.chdir(noisy.parent)
    noisy.with_name("t.csv").write_text("a,b\n")
    outcome = keras_seq_command("clean", *(noisy if a == "NOISY" else a for a in arguments))
    assert outcome.code == 2 and error in outcome.error
    assert not noisy.with_name("x").exists()
