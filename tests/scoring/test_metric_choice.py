"""The choice of metric for different kinds of references."""

import random

import pytest

from keras_seq.scoring import choose_bleu_tokenizer, choose_metric

DRAW = random.Random(1)


def words(count, length=(3, 9), letters="abcdefghijklmnopqrstuvwxyz"):
    return ["".join(DRAW.choices(letters, k=DRAW.randint(*length))) for _ in range(count)]


def lines(count, of, letters="abcdefghijklmnopqrstuvwxyz", join=" ", length=(3, 9)):
    return [join.join(words(DRAW.randint(*of), length, letters)) for _ in range(count)]


SENTENCES = lines(200, (6, 15))
PHONES = [" ".join(DRAW.choices("k a t ɛ ŋ s tʃ oː".split(), k=6)) for _ in range(100)]
KANJI_AND_KANA = "犬猫走食べてるのはをがにたす今日私彼女何時行来見"
JAPANESE = lines(200, (1, 1), KANJI_AND_KANA, length=(12, 25))


@pytest.mark.parametrize(
    ("references", "metric", "companion", "reason"),
    [
        (words(200), "exact", "cer", "1.0 words a line on average"),
        (["2034-09-26", "2034-09-27", "1999-01-02"], "exact", "cer", "1.0 words a line"),
        (["positive", "negative", "neutral"] * 40, "exact", "cer", "3 distinct values in 120"),
        # The 40 distinct values are 5 % of the lines.
        ([f"{n % 40} " + "word " * 9 for n in range(800)], "exact", "cer", "40 distinct values"),
        (PHONES, "exact", "wer", "8 symbols"),
        (lines(100, (2, 3)), "exact", "cer", "words a line on average"),
        # A few long lines raise the average above four words, but most lines have no 4-grams.
        (["one two"] * 40 + words(40) + lines(20, (20, 30)), "exact", "cer", "20 % of the"),
        (JAPANESE, "chrf", "bleu", "no spaces between words"),
        (lines(99, (1, 1), "สวัสดีครับผมชื่อ", length=(20, 30)), "chrf", "bleu", "no spaces"),
        # Readings of single Japanese words, which are short.
        (lines(200, (1, 1), "あいうえおかきくけこ", length=(2, 6)), "exact", "cer", "1.0 words"),
        (lines(100, (1, 1), length=(60, 90)), "chrf", "bleu", "1.0 words a line on average, and"),
        (SENTENCES, "bleu", "chrf", "words a line on average"),
        # A small sample of segmented Chinese, in which few words occur twice.
        (lines(12, (8, 12), KANJI_AND_KANA * 3, length=(1, 3)), "bleu", "chrf", "words a line"),
        # Korean has spaces between words.
        (
            lines(100, (5, 9), "가나다라마바사아자차카타파하", length=(2, 5)),
            "bleu",
            "chrf",
            "words",
        ),
        # A few different sentences are not a closed set of values.
        (SENTENCES[:12], "bleu", "chrf", "words a line"),
        ([], "bleu", "chrf", "no validation references"),
        ([""] * 30, "exact", "cer", "1 distinct values"),
        (["", "a"], "exact", "cer", "0.5 words a line"),
    ],
    ids=lambda value: "" if isinstance(value, list) else None,
)
def test_choice_fits_the_kind_of_text(references, metric, companion, reason):
    found = choose_metric(references)
    assert (found.metric, found.companion) == (metric, companion), found.reason
    assert reason in found.reason


def test_choice_does_not_depend_on_the_order_of_lines():
    for references in (SENTENCES, PHONES, JAPANESE):
        assert choose_metric(references) == choose_metric(references[::-1])


def test_bleu_counts_characters_only_without_spaces_between_words():
    assert choose_bleu_tokenizer(JAPANESE) == "char"
    for references in (SENTENCES, PHONES, words(50), []):
        assert choose_bleu_tokenizer(references) == "13a"
