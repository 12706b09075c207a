"""Replacement of tokens by bytes: what changes, how often, and determinism."""

import numpy as np
import pytest

from keras_seq.data import BatchStream, TokenCorpus, UnseenTokens, write_corpus

RATE = 0.3
BYTES = np.arange(4, 260, dtype=np.int32)
UNSEEN = UnseenTokens(RATE, np.arange(300) >= 260, BYTES)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Sources whose ids from 300 on are features; targets that share half of the tokens."""
    random = np.random.default_rng(0)
    pairs = [
        (random.integers(260, 310, 8).tolist(), random.integers(260, 300, 6).tolist())
        for _ in range(2000)
    ]
    path = tmp_path_factory.mktemp("corpus") / "corpus"
    write_corpus(path, pairs, max_source_length=40, max_target_length=40)
    return TokenCorpus.open(path)


def batches(corpus, epoch=0, **options):
    stream = BatchStream(corpus, batch_tokens=1000, seed=1, **options)
    count = stream.batches_per_epoch
    return [stream.batch(k) for k in range(epoch * count, (epoch + 1) * count)]


def test_tokens_of_both_sides_become_one_byte_everywhere(corpus):
    replaced = shared = 0
    for before, after in zip(batches(corpus), batches(corpus, unseen=UNSEEN), strict=True):
        for row in range(len(before["source"])):
            changes = {}
            for side in ("source", "target_input", "target_output"):
                for old, new in zip(before[side][row], after[side][row], strict=True):
                    assert changes.setdefault(old, new) == new
            both = set(before["source"][row]) & set(before["target_output"][row])
            changed = {old for old, new in changes.items() if old != new}
            assert changed <= {token for token in both if 260 <= token < 300}
            assert all(changes[token] in BYTES for token in changed)
            replaced += len(changed)
            shared += len({token for token in both if token >= 260})
    # Four standard deviations of a binomial share.
    assert abs(replaced / shared - RATE) < 4 * (RATE * (1 - RATE) / shared) ** 0.5


def test_replaced_tokens_depend_on_seed_and_batch_number_only(corpus):
    first, again, later = (batches(corpus, epoch, unseen=UNSEEN) for epoch in (0, 0, 1))
    for one, other in zip(first, again, strict=True):
        for name, array in one.items():
            np.testing.assert_array_equal(array, other[name])
    counts = [sum((batch["source"] < 260).sum() for batch in part) for part in (first, later)]
    assert counts[0] != counts[1]


def test_replaced_bytes_are_spread_over_all_bytes(corpus):
    found = np.concatenate([batch["source"].ravel() for batch in batches(corpus, unseen=UNSEEN)])
    assert len(set(found[(found >= 4) & (found < 260)].tolist())) > 200
