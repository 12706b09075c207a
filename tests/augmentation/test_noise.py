"""Noise in the sources of pairs, copies of lines, and invented stems."""

import gzip
from collections import Counter

import numpy as np
import pytest

from keras_seq.augmentation import Noise, copied_pairs, hallucinated_pairs, noised_pairs
from keras_seq.augmentation.hallucination import stems
from keras_seq.augmentation.noise import add_noise
from keras_seq.text import Example, InputError

WORDS = [f"w{number}" for number in range(20)]


def noised(count=2000, **options):
    generator = np.random.default_rng(0)
    return [add_noise(WORDS, Noise(**options), generator) for _ in range(count)]


def test_words_are_removed_and_masked_at_the_given_rates():
    """Within five standard errors of 40,000 words."""
    made = noised(drop=0.2, mask=0.3, swap=0)
    kept = sum(map(len, made))
    assert kept / 40_000 == pytest.approx(0.8, abs=5 * (0.16 / 40_000) ** 0.5)
    masked = sum(row.count("<mask>") for row in made)
    assert masked / kept == pytest.approx(0.3, abs=5 * (0.21 / kept) ** 0.5)
    # What stays is in order.
    rows = [[int(word[1:]) for word in row if word != "<mask>"] for row in made]
    assert all(row == sorted(row) for row in rows)


@pytest.mark.parametrize("swap", [0, 1, 3])
def test_no_word_moves_farther_than_the_limit(swap):
    distances = Counter()
    for row in noised(drop=0, swap=swap):
        assert sorted(row) == sorted(WORDS)
        distances.update(abs(WORDS.index(word) - place) for place, word in enumerate(row))
    assert max(distances) == swap
    # With this many rows, every distance up to the limit occurs.
    assert set(distances) == set(range(swap + 1))


def test_one_word_always_stays():
    assert all(len(row) == 1 for row in noised(count=50, drop=1.0))


def test_characters_and_features():
    example = Example("overlook\tV;PST", "overlooked")
    (made,) = noised_pairs([example], Noise(drop=0, swap=3, unit="character"), seed=3)
    source, features = made.source.split("\t")
    assert sorted(source) == sorted("overlook") and source != "overlook"
    assert (features, made.target) == ("V;PST", "overlooked")
    assert len(list(noised_pairs([example] * 3, Noise(), copies=4))) == 12


@pytest.mark.parametrize(
    "options, message",
    [
        ({"drop": 1.5}, "drop: received 1.5, expected a probability from 0 to 1"),
        ({"mask": -0.1}, "mask: received -0.1"),
        ({"swap": -1}, "swap: received -1, expected a distance of at least 0"),
        ({"drop": 0, "swap": 0}, "drop, mask and swap are 0"),
    ],
)
def test_impossible_noise_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        list(noised_pairs([Example("a", "b")], Noise(**options)))


def test_copies_have_a_tag_and_no_tab():
    made = list(copied_pairs(["ein Hund", " ", "a\tb"], tag="<copy>"))
    assert [(one.source, one.target) for one in made] == [
        ("<copy> ein Hund", "ein Hund"),
        ("<copy> a b", "a b"),
    ]


def test_stems_are_the_equal_parts_of_three_letters():
    assert stems("abspielen", "spielt ab") == [(2, 0, 5)]
    assert stems("ging", "gehen") == []
    assert stems("gesangbuch", "gesengbuch") == [(0, 0, 3), (4, 4, 6)]


def test_invented_stems_are_equal_on_both_sides_and_the_rest_stays():
    example = Example("abmustern\tV;PST", "gemustert ab")
    made = list(hallucinated_pairs([example, Example("Uxor", "Y")], 100, seed=1))
    assert len({one.source for one in made}) == 100
    for one in made:
        source, features = one.source.split("\t")
        # The stem is `muster`; its ends stay, because it is longer than five letters.
        assert source[:3] + source[7:] == "abmrn" and features == "V;PST"
        assert one.target == f"gem{source[3:7]}rt ab"
        # Capital letters stay where they are.
        assert source.islower()
    # Each letter of `uste` is replaced with probability one half by a random letter.
    changed = sum(a != b for one in made for a, b in zip(one.source[3:7], "uste", strict=True))
    assert 100 < changed < 240


def test_pairs_without_a_stem_are_refused():
    with pytest.raises(InputError, match="no source of 2 pairs shares 3 consecutive letters"):
        next(hallucinated_pairs([Example("ging", "gehen"), Example("ab", "ab")], 5))


def test_time_to_find_stems_is_bounded():
    """The time grows with the square of the length."""
    long = Example("ab" * 100_000, "ab" * 100_000)
    with pytest.raises(InputError, match="or one has more than 500"):
        next(hallucinated_pairs([long], 5))
    (made,) = hallucinated_pairs([long, Example("walked", "walking")], 1)
    assert made.source.endswith("ed") and made.target.endswith("ing")


def test_pairs_that_are_all_alike_are_named():
    with pytest.raises(InputError, match="no new pair was found: the letters of 1 pairs are too"):
        list(hallucinated_pairs([Example("aaaa", "aaaa")], 5))


def test_the_commands_write_pairs(tmp_path, keras_seq_command):
    pairs, lines = tmp_path / "pairs.tsv", tmp_path / "lines"
    pairs.write_text("walk\tV;PST\twalked\n \t\t\ntalk\tV;PST\ttalked\n")
    lines.write_text("ein Hund\n\neine Katze\n")
    columns = ["--columns", "source=1,features=2,target=3"]
    packed = tmp_path / "out.tsv.gz"
    outcome = keras_seq_command(
        "augment", "hallucinate", pairs, "-o", packed, *columns, "--count", 5
    )
    assert outcome.code == 0, outcome.err
    made = [line.split("\t") for line in gzip.decompress(packed.read_bytes()).decode().splitlines()]
    assert len(made) == 5
    assert all(row[1] == f"{row[0]}ed" and row[2] == "V;PST" for row in made)
    said = f"{packed}: 5 pairs; left out: 1 without text on both sides\n"
    assert outcome.err.startswith(said) and "some of these pairs may be held out" in outcome.err
    pairs.write_text(pairs.read_text() + "go\tV;PST\twent\n")
    outcome = keras_seq_command(
        "augment", "hallucinate", pairs, "-o", packed, *columns, "--count", 5, "--overwrite"
    )
    said = (
        "1 of 3 pairs are not used: source and target share no 3 consecutive letters, or one has "
        "more than 500 characters\n"
    )
    assert outcome.err.startswith(f"{said}{packed}: 5 pairs; left out: 1 without text")
    pairs.write_text(pairs.read_text().rpartition("go\t")[0])

    out = tmp_path / "out.tsv"
    noise = ["augment", "noise", pairs, "-o", out, *columns, "--unit", "character", "--drop", 0.5]
    outcome = keras_seq_command(*noise, "--copies", 2)
    assert f"{out}: 4 pairs made of 2; left out: 1 without text on both" in outcome.err
    rows = [line.split("\t") for line in out.read_text().splitlines()]
    assert [row[1:] for row in rows] == [
        [word, "V;PST"] for word in ("walked", "talked") for _ in "12"
    ]
    assert any(len(row[0]) < 4 for row in rows)

    assert keras_seq_command(*noise).error == f"{out}: exists already; --overwrite replaces it"
    languages = ["--columns", "source=1,target_language=2,target=3", "--overwrite"]
    assert "received target_language" in keras_seq_command(*noise[:5], *languages).error
    copy = ["augment", "copy", lines, "--tag", "<copy>", "-o"]
    outcome = keras_seq_command(*copy, out, "--overwrite")
    assert f"{out}: 2 pairs; left out: 1 blank lines\n" in outcome.err
    assert out.read_text() == "<copy> ein Hund\tein Hund\n<copy> eine Katze\teine Katze\n"
    named = keras_seq_command(*copy, out, "--overwrite", "--target-language", "de")
    assert named.code == 0 and out.read_text().startswith("<copy> ein Hund\tein Hund\tde\n")
    assert "received 'd e'" in keras_seq_command(*copy, out, "--target-language", "d e").error
    tab = ["--tag", "a\tb", "--overwrite"]
    assert (
        "tag: received 'a\\tb', expected text without"
        in keras_seq_command(*copy[:3], "-o", out, *tab).error
    )
    assert "would replace the text it is made of" in keras_seq_command(*copy, lines).error
    lines.write_text("\n")
    assert keras_seq_command(*copy, tmp_path / "none").error == f"{lines}: no pair has text"
    assert not (tmp_path / "none").exists()
