"""Scores of each text against each other, compared with sacreBLEU's scores of sentences."""

import random

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from keras_seq.scoring import pairwise_scores

WORDS = ["ein", "Hund", "rennt.", "Katze", "über", "die", "2,5", "Straße!", "a", "猫です"]
RANDOM = random.Random(3)
TEXTS = [
    *(" ".join(RANDOM.choices(WORDS, k=RANDOM.randrange(1, 9))) for _ in range(12)),
    *("", "x", "ein", " ein ", "ein Hund", "Ein Hund rennt über die Straße!"),
]


@pytest.mark.parametrize(
    ("name", "metric"), [("chrf", CHRF()), ("bleu", BLEU(effective_order=True))]
)
def test_each_score_is_that_of_the_sentence(name, metric):
    expected = [
        [metric.sentence_score(text, [reference]).score for reference in TEXTS] for text in TEXTS
    ]
    np.testing.assert_allclose(pairwise_scores(TEXTS, name), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("tokenize", "used"), [("char", "char"), ("auto", "char"), (None, "13a")])
def test_bleu_has_the_tokenizer_that_is_named_or_fits(tokenize, used):
    texts = ["犬が走っている。", "猫が走っている。", "犬が公園を走る。"]
    metric = BLEU(effective_order=True, tokenize=used)
    expected = [[metric.sentence_score(a, [b]).score for b in texts] for a in texts]
    scores = pairwise_scores(texts, "bleu", tokenize=tokenize)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-9)


def test_exact_match_ignores_spaces_at_the_ends():
    expected = [[100.0 * (a.strip() == b.strip()) for b in TEXTS] for a in TEXTS]
    np.testing.assert_array_equal(pairwise_scores(TEXTS, "exact"), expected)


def test_unknown_metric_is_refused():
    with pytest.raises(ValueError, match="unknown metric 'ter', expected one of chrf, bleu, exact"):
        pairwise_scores(["a"], "ter")
    assert pairwise_scores([], "chrf").shape == (0, 0)
