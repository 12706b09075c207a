"""Temperature sampling, against shares computed by hand from n^(1/T)."""

from collections import Counter

import numpy as np
import pytest

from keras_seq.data import (
    BatchStream,
    TokenCorpus,
    balanced_items,
    balanced_rows,
    balanced_sizes,
    write_corpus,
)
from keras_seq.data.counter_rng import Purpose, row_keys
from keras_seq.data.word_dropout import drop_words

FR, DE, SPACE = 261, 260, 262


@pytest.mark.parametrize(
    ("temperature", "expected"),
    [
        (1, {"de": 10_000, "fr": 100, "it": 1}),
        # 10,000 (100 / 10,000)^(1/2) = 10,000 / 10 and 10,000 (1 / 10,000)^(1/2) = 10,000 / 100
        (2, {"de": 10_000, "fr": 1000, "it": 100}),
        # 10,000 (1 / 100)^(1/4) = 10,000 / 3.16228 and 10,000 (1 / 10,000)^(1/4) = 10,000 / 10
        (4, {"de": 10_000, "fr": 3162, "it": 1000}),
    ],
)
def test_sizes_are_those_computed_by_hand(temperature, expected):
    sizes = {"de": 10_000, "fr": 100, "it": 1}
    balanced = balanced_sizes(sizes, temperature)
    assert balanced == expected
    # The definition: shares are proportional to n^(1/T).
    powers = {name: size ** (1 / temperature) for name, size in sizes.items()}
    for name, size in balanced.items():
        share = powers[name] / sum(powers.values())
        assert size / sum(balanced.values()) == pytest.approx(share, abs=1e-4)
    assert balanced_sizes({}, 5) == {} and balanced_sizes({"a": 0, "b": 2}, 5) == {"a": 0, "b": 2}


def test_each_pair_occurs_about_equally_often():
    groups = np.array([0] * 16 + [1] * 5)[np.random.default_rng(0).permutation(21)]
    rows = balanced_rows(groups, 2)
    counts = np.bincount(rows, minlength=21)
    # 16 (5 / 16)^(1/2) = 8.94
    assert counts[groups == 0].tolist() == [1] * 16
    assert sorted(counts[groups == 1].tolist()) == [1, 2, 2, 2, 2]
    assert rows.dtype == np.int32 and (np.diff(rows) >= 0).all()
    # The stream of text has the same copies.
    sizes = {0: 16, 1: 5}
    items = balanced_items(enumerate(groups), lambda item: int(item[1]), sizes, 2)
    assert [number for number, _ in items] == rows.tolist()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """32 pairs to German and 2 to French, in shards of 7; a space precedes some tags."""
    path = tmp_path_factory.mktemp("corpus") / "corpus"
    pairs = []
    for number in range(34):
        tag = FR if number in (5, 30) else DE
        start = [tag, SPACE] if number % 2 else [SPACE, tag]
        # The tag of another language within a text does not count.
        pairs.append(([*start, FR, *[9] * (number % 5)], [300 + number]))
    pairs.append(([SPACE], [400]))
    longest = {"max_source_length": 20, "max_target_length": 20}
    write_corpus(path, pairs, shard_pairs=7, **longest)
    return TokenCorpus.open(path)


def targets(stream, epoch):
    batches = range(epoch * stream.batches_per_epoch, (epoch + 1) * stream.batches_per_epoch)
    outputs = np.concatenate([stream.batch(k)["target_output"][:, 0] for k in batches])
    return outputs[outputs > 0].tolist()


@pytest.mark.parametrize("shapes", ["exact", "buckets"])
def test_an_epoch_has_the_shares_and_every_pair(corpus, shapes):
    options = {"batch_tokens": 40, "seed": 3, "tags": [FR, DE], "shapes": shapes}
    stream = BatchStream(corpus, temperature=2, **options)
    counts = Counter(targets(stream, 0))
    # 32 German pairs; French 32 (2 / 32)^(1/2) = 8; no language 32 (1 / 32)^(1/2) = 5.66.
    french = {305: 4, 330: 4}
    assert counts == {400: 6, **{300 + i: 1 for i in range(34)}, **french}
    assert Counter(targets(stream, 1)) == counts
    assert targets(stream, 1) != targets(stream, 0)
    assert Counter(targets(BatchStream(corpus, **options), 0)) == {
        400: 1,
        **{300 + i: 1 for i in range(34)},
    }


def test_a_batch_is_a_function_of_its_number(corpus):
    options = {"batch_tokens": 40, "seed": 3, "tags": [FR, DE], "temperature": 5.0}
    stream = BatchStream(corpus, **options)
    batches = [stream.batch(k) for k in range(2 * stream.batches_per_epoch)]
    for k in (len(batches) - 1, 3):
        resumed = BatchStream(corpus, **options)
        weight = sum((row > 0).sum() for row in batches[k]["target_output"])
        assert resumed.total_weight(k) == weight
        for name, array in resumed.batch(k).items():
            assert np.array_equal(array, batches[k][name])


def test_hosts_share_the_batches(corpus):
    options = {"batch_tokens": 60, "seed": 3, "tags": [FR, DE], "temperature": 5.0}
    whole = BatchStream(corpus, **options).batch(2)["source"]
    parts = [BatchStream(corpus, **options, host=i, hosts=2).batch(2)["source"] for i in (0, 1)]
    assert np.array_equal(np.concatenate(parts)[: len(whole)], whole)


def test_a_low_temperature_is_refused(corpus):
    with pytest.raises(ValueError, match="temperature must be at least 1, received 0.5"):
        BatchStream(corpus, batch_tokens=40, seed=3, temperature=0.5)


def test_word_dropout_keeps_the_tags():
    rows = np.array([[FR, *range(4, 200), 3]] * 20, np.int32)
    keys = row_keys(1, 0, np.arange(20), Purpose.SOURCE_WORDS)
    dropped = drop_words({"source": rows}, "source", 0.9, keys, np.array([FR]))["source"]
    assert (dropped[:, 0] == FR).all() and (dropped == 1).mean() == pytest.approx(0.9, abs=0.02)
    assert not (drop_words({"source": rows}, "source", 0.9, keys)["source"][:, 0] == FR).all()
