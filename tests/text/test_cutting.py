"""Subword sampling: frequencies of segmentations, compared with exact probabilities."""

import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest
import sentencepiece

from keras_seq.text import Tokenizer, subword_sampling
from keras_seq.text.cutting import BpeDropout, UnigramSampling

# Words over a small alphabet, so that they share many pieces.
LETTERS = random.Random(5)
WORDS = ["".join(LETTERS.choices("abcde", k=LETTERS.randint(2, 7))) for _ in range(600)]
TEXT = [" ".join(LETTERS.choices(WORDS, k=8)) for _ in range(300)]


@pytest.fixture(scope="module")
def unigram():
    return Tokenizer.train(TEXT, size=400)


@pytest.fixture(scope="module")
def bpe():
    return Tokenizer.train(TEXT, size=400, kind="bpe")


def numbers(seed=0):
    generator = np.random.default_rng(seed)
    while True:
        yield from generator.random(4096).tolist()


def word(tokenizer, text):
    return tuple(tokenizer.encode([text])[0])


def assert_frequencies(draws: Counter, probabilities: dict) -> None:
    """Asserts that no other segmentation occurs and that a chi-square test passes (p = 0.001)."""
    total = sum(draws.values())
    assert draws.keys() <= probabilities.keys()
    assert sum(probabilities.values()) == pytest.approx(1)
    square, groups, rest = 0.0, 0, [0.0, 0.0]
    for cut, probability in probabilities.items():
        if total * probability < 5:
            rest[0] += draws[cut]
            rest[1] += total * probability
        else:
            groups += 1
            square += (draws[cut] - total * probability) ** 2 / (total * probability)
    if rest[1] >= 5:
        groups += 1
        square += (rest[0] - rest[1]) ** 2 / rest[1]
    freedom = groups - 1
    assert groups > 2
    # The Wilson-Hilferty approximation of the chi-square quantile.
    bound = freedom * (1 - 2 / (9 * freedom) + 3.09 * math.sqrt(2 / (9 * freedom))) ** 3
    assert square < bound


def spellings(tokenizer, text):
    """Returns each segmentation of a text into pieces, with the sum of the piece scores."""
    if not text:
        return [((), 0.0)]
    return [
        ((id, *rest), piece.score + score)
        for id, piece in enumerate(tokenizer.pieces)
        if piece.is_text and text.startswith(piece.text)
        for rest, score in spellings(tokenizer, text[len(piece.text) :])
    ]


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0])
def test_unigram_sampling_follows_the_probabilities_of_all_segmentations(unigram, alpha):
    ways = spellings(unigram, "\u2581abdecbda")
    weights = [math.exp(alpha * score) for _, score in ways]
    sampling, chance = UnigramSampling(unigram, alpha), numbers()
    cut = word(unigram, "abdecbda")
    draws = Counter(tuple(sampling.sample([cut], chance)[0]) for _ in range(20_000))
    assert len(ways) > 10
    assert_frequencies(
        draws, {ids: w / sum(weights) for (ids, _), w in zip(ways, weights, strict=True)}
    )


def test_unigram_sampling_cuts_the_words_of_a_line_independently(unigram):
    """Sampling from all segmentations segments adjacent words independently."""
    sampling, chance = UnigramSampling(unigram, 0.3), numbers()
    words = [word(unigram, "bedca"), word(unigram, "deabc")]
    draws = [tuple(map(tuple, sampling.sample(words, chance))) for _ in range(20_000)]
    first, second = Counter(cut[0] for cut in draws), Counter(cut[1] for cut in draws)
    joint = {
        (one, other): first[one] * second[other] / len(draws) ** 2
        for one, other in itertools.product(first, second)
    }
    assert_frequencies(Counter(draws), joint)


@pytest.mark.parametrize(("nbest", "alpha"), [(4, 0.5), (7, 0.2), (64, 0.2), (64, 1.0)])
@pytest.mark.parametrize("line", ["abdecbda", "deabc cabed", "bad cede abbe dead decade"])
def test_n_best_sampling_matches_sentencepiece(unigram, nbest, alpha, line):
    processor = sentencepiece.SentencePieceProcessor(model_proto=unigram.to_bytes())
    ways = [tuple(ids) for ids in processor.nbest_encode(line, nbest_size=nbest + 20)]
    all_scores = [sum(processor.get_score(id) for id in ids) for ids in ways]
    # End the n-best list at a clear drop in score, so that rounding does not change the list.
    drops = -np.diff([*all_scores, -math.inf]) > 1e-4
    nbest = min(nbest, len(ways)) + int(np.argmax(drops[min(nbest, len(ways)) - 1 :]))
    ways = ways[:nbest]
    scores = dict(zip(ways, all_scores, strict=False))
    top = max(scores.values())
    weights = {ids: math.exp(alpha * (score - top)) for ids, score in scores.items()}
    probabilities = {ids: weight / sum(weights.values()) for ids, weight in weights.items()}
    sampling, chance = UnigramSampling(unigram, alpha, nbest), numbers()
    words = [word(unigram, text) for text in line.split()]
    draws = Counter(
        tuple(itertools.chain.from_iterable(sampling.sample(words, chance))) for _ in range(6000)
    )
    assert_frequencies(draws, probabilities)


def test_high_alpha_gives_the_most_likely_segmentation(unigram):
    for nbest in (-1, 5):
        sampling, chance = UnigramSampling(unigram, 100.0, nbest), numbers()
        for line in TEXT[:3]:
            words = [word(unigram, text) for text in line.split()]
            assert [tuple(ids) for ids in sampling.sample(words, chance)] == words


def merge_probabilities(pieces: dict, symbols: tuple, dropout: float) -> Counter:
    """Algorithm 1 of the paper, summed over every set of merges that may be dropped."""
    merges = [
        (pieces[symbols[i] + symbols[i + 1]], i)
        for i in range(len(symbols) - 1)
        if symbols[i] + symbols[i + 1] in pieces
    ]
    result: Counter = Counter()
    for kept in itertools.product([False, True], repeat=len(merges)):
        chance = math.prod(1 - dropout if keep else dropout for keep in kept)
        left = [merge for merge, keep in zip(merges, kept, strict=True) if keep]
        if not left:
            result[symbols] += chance
            continue
        i = min(left)[1]
        merged = (*symbols[:i], symbols[i] + symbols[i + 1], *symbols[i + 2 :])
        for cut, probability in merge_probabilities(pieces, merged, dropout).items():
            result[cut] += chance * probability
    return result


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
def test_bpe_dropout_matches_the_algorithm_of_the_paper(bpe, dropout):
    rank = {piece.text: -piece.score for piece in bpe.pieces if piece.is_text}
    ids = {piece.text: id for id, piece in enumerate(bpe.pieces)}
    expected = {
        tuple(ids[symbol] for symbol in cut): probability
        for cut, probability in merge_probabilities(rank, tuple("\u2581bedca"), dropout).items()
    }
    sampling, chance, cut = BpeDropout(bpe, dropout), numbers(), word(bpe, "bedca")
    draws = Counter(tuple(sampling.sample([cut], chance)[0]) for _ in range(20_000))
    assert_frequencies(draws, expected)


def test_bpe_dropout_that_drops_nothing_equals_sentencepiece(bpe):
    sampling = BpeDropout(bpe, 0.5)
    for text in {*WORDS[:200], "abababab", "aaaaaaa", "bedcabedcabedca"}:
        cut = word(bpe, text)
        assert tuple(sampling.sample([cut], itertools.repeat(0.7))[0]) == cut
        apart = sampling.sample([cut], itertools.repeat(0.3))[0]
        assert [bpe.pieces[id].text for id in apart] == list("\u2581" + text)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_sampled_segmentation_decodes_to_the_same_text(kind, unigram, bpe):
    tokenizer = {"unigram": unigram, "bpe": bpe}[kind]
    assert tokenizer.kind == kind
    for nbest in (-1, 1, 16):
        sampling, chance = subword_sampling(tokenizer, 0.2, nbest), numbers()
        for text in " ".join(TEXT[:3]).split():
            cut = word(tokenizer, text)
            assert not sampling.fixed[list(cut)].any() and sampling.begins[cut[0]]
            [drawn] = sampling.sample([cut], chance)
            assert tokenizer.decode([drawn]) == [text]
            if kind == "unigram" and nbest == 1:
                assert tuple(drawn) == cut
    assert sampling.fixed[:4].all() and sampling.fixed[4:260].all()


def test_segmentation_cache_is_bounded_and_does_not_change_samples(unigram, monkeypatch):
    monkeypatch.setattr("keras_seq.text.cutting._CACHE_PIECES", 50)
    for nbest in (-1, 8):
        sampling, other = (UnigramSampling(unigram, 0.3, nbest) for _ in range(2))
        words = [word(unigram, text) for text in " ".join(TEXT[:3]).split()]
        chance = numbers(), numbers()
        for first in range(20):
            one = sampling.sample(words[first:], chance[0])
            assert one == other.sample(words[first:], chance[1])
        assert sampling._cached_pieces < 400


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "alpha must be above 0, received 0"),
        ((float("nan"),), "alpha must be above 0, received nan"),
        ((0.1, 0), "nbest must be a positive integer or -1 for all, received 0"),
        ((0.1, -2), "received -2"),
    ],
)
def test_subword_sampling_argument_out_of_range_raises_value_error(
    unigram, bpe, arguments, message
):
    with pytest.raises(ValueError, match=message):
        subword_sampling(unigram, *arguments)
    with pytest.raises(ValueError, match="dropout must be above 0 and below 1, received 1"):
        subword_sampling(bpe, 1)
