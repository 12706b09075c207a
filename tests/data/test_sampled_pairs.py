"""Batches with sampled subwords: same text, other tokens, independent of host and order."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from keras_seq.data import BatchStream, PairSampling, TokenCorpus, TokenPair, write_corpus
from keras_seq.data.sampled_pairs import SampledPairs, plan_lengths
from keras_seq.text import Tokenizer, link_tokens, subword_sampling, tokens_of_words

LETTERS = random.Random(5)
WORDS = ["".join(LETTERS.choices("abcde", k=LETTERS.randint(1, 7))) for _ in range(400)]
# Words with byte pieces (漢 is in no vocabulary below) and with digits.
WORDS += ["漢", "a漢b", "漢漢字cab", "17"]


def lines(count: int) -> list[str]:
    return [" ".join(LETTERS.choices(WORDS, k=LETTERS.randint(1, 12))) for _ in range(count)]


SOURCES = list(dict.fromkeys(lines(700)))
TARGETS = lines(len(SOURCES))
TEXT = [line.replace("漢", "").replace("字", "") for line in SOURCES + TARGETS]
LONGEST = 60


class Made:
    """A corpus with its text and its subword sampling."""

    def __init__(self, path: Path, kind: str) -> None:
        self.source = Tokenizer.train(TEXT, size=400, kind=kind)
        self.target = Tokenizer.train(TEXT[: len(SOURCES)], size=330, kind=kind)
        self.sampling = PairSampling(
            *(subword_sampling(side, 0.15) for side in (self.source, self.target))
        )
        # Link word n to word n, and give each line a different weight.
        self.links = [
            [(n, n) for n in range(min(len(source.split()), len(target.split())))]
            for source, target in zip(SOURCES, TARGETS, strict=True)
        ]
        pairs = map(
            TokenPair,
            self.source.encode(SOURCES),
            self.target.encode(TARGETS),
            [1 + n / 1024 for n in range(len(SOURCES))],
            self.token_links(SOURCES, TARGETS),
        )
        limits = {"max_source_length": LONGEST, "max_target_length": LONGEST}
        write_corpus(path, pairs, shard_pairs=99, weights=True, alignments=True, **limits)
        self.corpus = TokenCorpus.open(path)

    def token_links(self, sources, targets):
        words = zip(
            tokens_of_words(self.source, sources),
            tokens_of_words(self.target, targets),
            strict=True,
        )
        return [
            link_tokens(links, *tokens)[0] for links, tokens in zip(self.links, words, strict=True)
        ]

    def stream(self, **options):
        options = {"batch_tokens": 500, "seed": 3, "sampling": self.sampling} | options
        return BatchStream(self.corpus, **options)

    def rows(self, batch):
        """Tokens of each pair in a batch by its number in the corpus, after checking the format."""
        found = {}
        for row, (source, given, target) in enumerate(
            zip(batch["source"], batch["target_input"], batch["target_output"], strict=True)
        ):
            if not source.any():
                assert not given.any() and not target.any() and not batch["weight"][row]
                continue
            number = round((float(batch["weight"][row]) - 1) * 1024)
            for ids in (source, target):
                length = np.flatnonzero(ids == 3)[0]
                assert (ids[:length] > 3).all() and not ids[length + 1 :].any()
            assert given[0] == 2
            kept = target[target > 3]
            np.testing.assert_array_equal(given[1 : len(kept) + 1], kept)
            assert not given[len(kept) + 1 :].any()
            found[number] = (source[source > 3].tolist(), kept.tolist())
        return found


@pytest.fixture(scope="module")
def unigram(tmp_path_factory):
    return Made(tmp_path_factory.mktemp("unigram") / "corpus", "unigram")


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def made(request, tmp_path_factory):
    return Made(tmp_path_factory.mktemp(request.param) / "corpus", request.param)


@pytest.mark.parametrize("shapes", ["exact", "buckets"])
def test_each_epoch_has_the_same_text_in_other_tokens(made, shapes):
    stream, epochs = made.stream(shapes=shapes), []
    for epoch in range(2):
        found = {}
        for k in range(epoch * stream.batches_per_epoch, (epoch + 1) * stream.batches_per_epoch):
            batch = stream.batch(k)
            rows = made.rows(batch)
            assert not rows.keys() & found.keys()
            found |= rows
            tokens = sum(
                (1 + number / 1024) * (len(target) + 1) for number, (_, target) in rows.items()
            )
            assert stream.total_weight(k) == pytest.approx(tokens, rel=1e-12)
        assert found.keys() == set(range(len(SOURCES)))
        numbers = sorted(found)
        for side, tokenizer, text in ((0, made.source, SOURCES), (1, made.target, TARGETS)):
            assert tokenizer.decode(found[number][side] for number in numbers) == text
        epochs.append(found)
    same = sum(epochs[0][number] == epochs[1][number] for number in epochs[0])
    stored = sum(
        epochs[0][number][0] == made.corpus.source(number).tolist() for number in epochs[0]
    )
    assert same < 0.1 * len(SOURCES) and stored < 0.4 * len(SOURCES)


@pytest.mark.parametrize("shapes", ["exact", "buckets"])
def test_sampled_batches_respect_token_budget_bounds_and_lengths(made, shapes):
    stream = made.stream(shapes=shapes)
    bounds, seen, fits, lengthened = stream.bounds, set(), 0, 0
    everything = np.arange(len(SOURCES))
    # Two epochs without a length limit.
    free = [
        SampledPairs(made.corpus, everything, made.sampling, 3, epoch, (999, 999))
        for epoch in range(2)
    ]
    free = [pairs.padded("source", everything, 200) for pairs in free]
    for k in range(2 * stream.batches_per_epoch):
        batch = stream.batch(k)
        shape = (*batch["source"].shape, batch["target_input"].shape[1])
        assert shape[0] * max(shape[1:]) <= 500 or shape[0] == 1
        assert max(shape[1:]) <= -(-(LONGEST + 1) // 8) * 8
        assert (np.array(shape) <= bounds).all(axis=1).any()
        seen.add(shape)
        for number, (source, target) in made.rows(batch).items():
            stored = made.corpus.source(number).tolist(), made.corpus.target(number).tolist()
            lengthened += len(source) > len(stored[0])
            drawn = free[k // stream.batches_per_epoch][number]
            fits += source == drawn[drawn > 0].tolist()
            assert max(len(source), len(target)) <= LONGEST
    if shapes == "buckets":
        assert seen == set(map(tuple, bounds.tolist()))
    # The planned length of a pair fits 99 % of its samples, and its batch has more room.
    assert fits > 0.985 * 2 * len(SOURCES) and lengthened > 0.5 * 2 * len(SOURCES)


def test_batch_by_number_equals_the_batch_in_sequence(made):
    on_the_way = made.stream()
    length = 2 * on_the_way.batches_per_epoch + 1
    batches = [on_the_way.batch(k) for k in range(length)]
    for k in (0, 7, length - 1):
        # As in a resumed run: a new stream computes batch k, or its total weight, first.
        for alone in (made.stream(), made.stream(batch_tokens=500)):
            if k:
                alone.total_weight(k)
            for key, array in alone.batch(k).items():
                np.testing.assert_array_equal(array, batches[k][key])


def test_host_batches_join_to_the_full_batch(unigram):
    whole = unigram.stream(word_dropout=0.2)
    parts = [
        unigram.stream(word_dropout=0.2, host=host, hosts=3, row_multiple=4) for host in range(3)
    ]
    for k in range(6):
        batch = whole.batch(k)
        shares = [part.batch(k) for part in parts]
        assert {part.total_weight(k) for part in parts} == {whole.total_weight(k)}
        for key, array in batch.items():
            assert len({share[key].shape for share in shares}) == 1
            joined = np.concatenate([share[key] for share in shares])
            real = np.concatenate([share["weight"] for share in shares]) > 0
            np.testing.assert_array_equal(joined[real], array)


def test_sampled_tokens_of_a_pair_rarely_depend_on_its_batch(unigram):
    """In a batch of another size, a pair has the same tokens unless they do not fit."""
    cuts = []
    for batch_tokens in (200, 3000):
        stream, found = unigram.stream(batch_tokens=batch_tokens), {}
        for k in range(stream.batches_per_epoch):
            found |= unigram.rows(stream.batch(k))
        cuts.append(found)
    assert sum(cuts[0][number] == cuts[1][number] for number in cuts[0]) > 0.95 * len(SOURCES)
    other = unigram.stream(seed=4, batch_tokens=3000)
    found = {}
    for k in range(other.batches_per_epoch):
        found |= unigram.rows(other.batch(k))
    assert sum(cuts[1][number] == found[number] for number in found) < 0.1 * len(SOURCES)


def test_alignments_follow_the_sampled_tokens_of_their_words(made):
    stream = made.stream()
    for k in range(5):
        batch = stream.batch(k)
        for row, weight in enumerate(batch["weight"]):
            number = round((float(weight) - 1) * 1024)
            word_of = []
            for key, tokenizer, text in (
                ("source", made.source, SOURCES[number]),
                ("target_output", made.target, TARGETS[number]),
            ):
                ids = [id for id in batch[key][row].tolist() if id > 3]
                # By hand: a token belongs to the word that starts at the last space before it.
                begins = [tokenizer.pieces[id].text.startswith("\u2581") for id in ids]
                word_of.append((np.cumsum(begins) - 1).tolist())
                assert word_of[-1][-1] == len(text.split()) - 1
            source_words, target_words = word_of
            expected = np.zeros(batch["alignment"].shape[1:])
            for t, word in enumerate(target_words):
                linked = [s for s, other in enumerate(source_words) if other == word]
                for s in linked:
                    expected[t, s] = 1 / len(linked)
            expected[len(target_words), len(source_words)] = 1
            np.testing.assert_allclose(batch["alignment"][row], expected, rtol=1e-6)


def test_pair_at_the_length_limit_is_never_cut_longer(tmp_path):
    """The longest pair of the corpus has reached the limit, so no sample may be longer."""
    tokenizer = Tokenizer.train(TEXT, size=400)
    ids = tokenizer.encode(["abdecbda deabc cabed"])[0]
    limits = {"max_source_length": len(ids), "max_target_length": len(ids)}
    write_corpus(tmp_path / "corpus", [(ids, ids)] * 400, **limits)
    corpus = TokenCorpus.open(tmp_path / "corpus")
    one = subword_sampling(tokenizer, 0.01)
    assert plan_lengths(corpus, PairSampling(one, one), 1).source_lengths.max() == len(ids)
    stream = BatchStream(corpus, batch_tokens=300, seed=1, sampling=PairSampling(one, one))
    found = Counter(
        tuple(row[row > 3].tolist())
        for k in range(stream.batches_per_epoch)
        for row in stream.batch(k)["source"]
    )
    assert max(map(len, found)) == len(ids)
    assert found[tuple(ids)] > 300


def test_planned_lengths_stay_between_stored_lengths_and_the_limit(made):
    planned = plan_lengths(made.corpus, made.sampling, 3)
    for lengths, stored in (
        (planned.source_lengths, made.corpus.source_lengths),
        (planned.target_lengths, made.corpus.target_lengths),
    ):
        assert lengths.shape == stored.shape and (lengths >= stored).all()
        assert lengths.max() <= LONGEST and lengths.mean() < 2.2 * stored.mean()


def test_bpe_dropout_handles_words_that_need_many_random_numbers(tmp_path):
    """BPE dropout needs more random numbers than a line has tokens."""
    tokenizer = Tokenizer.train(["ab" * 40, "abab", "aabb"] * 9, size=290, kind="bpe")
    ids = tokenizer.encode(["ab" * 200])[0]
    limits = {"max_source_length": 500, "max_target_length": 500}
    write_corpus(tmp_path / "corpus", [(ids, ids)], **limits)
    dropout = subword_sampling(tokenizer, 0.5)
    stream = BatchStream(
        TokenCorpus.open(tmp_path / "corpus"),
        batch_tokens=900,
        seed=1,
        sampling=PairSampling(dropout, dropout),
    )
    batches = [stream.batch(k) for k in range(8)]
    assert tokenizer.decode(batch["source"][0] for batch in batches) == ["ab" * 200] * 8
    assert len({tuple(batch["source"][0].tolist()) for batch in batches}) > 1
