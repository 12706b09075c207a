"""Word dropout: which words are dropped, how often, and determinism by seed and batch."""

import numpy as np
import pytest

from keras_seq.data import BatchStream, TokenCorpus, write_corpus

SHARES = {"word_dropout": 0.3, "source_word_dropout": 0.1}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    random = np.random.default_rng(0)
    pairs = [
        tuple(random.integers(4, 500, length).tolist() for length in random.integers(1, 30, 2))
        for _ in range(3000)
    ]
    path = tmp_path_factory.mktemp("corpus") / "corpus"
    write_corpus(path, pairs, max_source_length=40, max_target_length=40)
    return TokenCorpus.open(path)


def stream(corpus, seed=1, **options):
    return BatchStream(corpus, batch_tokens=1000, seed=seed, **options)


@pytest.mark.parametrize("shapes", ["exact", "buckets"])
def test_word_dropout_replaces_the_given_share_of_words_only(corpus, shapes):
    plain, dropped = stream(corpus, shapes=shapes), stream(corpus, shapes=shapes, **SHARES)
    counts = {key: [0, 0] for key in ("source", "target_input")}
    for k in range(plain.batches_per_epoch):
        before, after = plain.batch(k), dropped.batch(k)
        np.testing.assert_array_equal(before["target_output"], after["target_output"])
        assert dropped.total_weight(k) == plain.total_weight(k)
        for key, count in counts.items():
            changed = before[key] != after[key]
            assert (after[key][changed] == 1).all()
            # The ids of padding, begin and end are below 4.
            assert (before[key][changed] >= 4).all()
            count[0] += changed.sum()
            count[1] += (before[key] >= 4).sum()
    for key, share in (("source", 0.1), ("target_input", 0.3)):
        dropped_words, words = counts[key]
        # Four standard deviations of a binomial share.
        assert abs(dropped_words / words - share) < 4 * (share * (1 - share) / words) ** 0.5


def test_word_dropout_depends_only_on_seed_and_batch_number(corpus):
    made = stream(corpus, **SHARES)
    k = made.batches_per_epoch + 3
    first = made.batch(k)
    for key, array in stream(corpus, **SHARES).batch(k).items():
        np.testing.assert_array_equal(array, first[key])
    # The next epoch drops other words of the same pair.
    hidden = {}
    for epoch in (0, 1):
        for place in range(made.batches_per_epoch):
            batch = made.batch(epoch * made.batches_per_epoch + place)
            for given, expected in zip(batch["target_input"], batch["target_output"], strict=True):
                hidden.setdefault(tuple(expected[expected > 3].tolist()), []).append(given == 1)
    long = [shown for words, shown in hidden.items() if len(words) > 15]
    same = sum(np.array_equal(one[:16], other[:16]) for one, other in long)
    assert len(long) > 1000 and same < 0.02 * len(long)


def test_word_dropout_is_the_same_on_many_hosts_as_on_one(corpus):
    whole = stream(corpus, **SHARES)
    parts = [stream(corpus, host=host, hosts=3, row_multiple=2, **SHARES) for host in range(3)]
    for k in range(5):
        batch = whole.batch(k)
        for key in ("source", "target_input"):
            joined = np.concatenate([part.batch(k)[key] for part in parts])
            np.testing.assert_array_equal(joined[joined.any(axis=1)], batch[key])


@pytest.mark.parametrize("name", SHARES)
@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_word_dropout_share_out_of_range_raises_value_error(corpus, name, share):
    with pytest.raises(ValueError, match=rf"{name} must be in \[0, 1\), received"):
        stream(corpus, **{name: share})
