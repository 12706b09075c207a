"""Batches whose rows continue the rows of the batch before."""

import numpy as np
import pytest

from keras_seq.data import ContiguousStream, TokenCorpus, contiguous_batches, pack, write_corpus
from keras_seq.text import InputError

LENGTH = 5


@pytest.fixture
def corpus(tmp_path):
    """A text of 58 tokens in pieces of 5: eleven whole ones and one of three."""
    text = [list(range(4, 4 + 57))]
    pairs = (((), piece) for piece in pack(text, LENGTH))
    write_corpus(
        tmp_path / "c",
        pairs,
        max_source_length=5,
        max_target_length=LENGTH,
        target_only=True,
        packed=True,
    )
    return TokenCorpus.open(tmp_path / "c")


def whole(corpus):
    return np.concatenate([corpus.target(i) for i in range(len(corpus))]).tolist()


def test_rows_continue_from_batch_to_batch(corpus):
    stream = ContiguousStream(corpus, rows=3, length=LENGTH, seed=1)
    assert (stream.batches_per_epoch, stream.carries) == (4, True)
    text = whole(corpus)
    begins = set()
    for epoch in range(5):
        batches = [stream.batch(4 * epoch + k) for k in range(4)]
        assert batches[0]["carried"].tolist() == [0, 0, 0]
        for row in range(3):
            outputs = [batch["target_output"][row] for batch in batches]
            inputs = [batch["target_input"][row] for batch in batches]
            for k, (target, given) in enumerate(zip(outputs, inputs, strict=True)):
                real = target[target != 0]
                place = text.index(real[0])
                begins.add(place)
                assert real.tolist() == text[place : place + len(real)]
                # Each token follows the one before it, also over the edge of two pieces.
                assert given[1:].tolist() == target[:-1].tolist()
                if batches[k]["carried"][row]:
                    assert given[0] == text[place - 1]
                    assert outputs[k - 1][outputs[k - 1] != 0][-1] == text[place - 1]
                else:
                    # At the begin of an epoch or of the text.
                    assert given[0] == 2 and (k == 0 or place == 0)
    # Epochs begin at different places, so no piece is always left out.
    assert begins == set(range(0, 58, LENGTH))


def test_a_batch_is_a_function_of_its_number(corpus):
    first, second = (ContiguousStream(corpus, rows=2, length=LENGTH, seed=7) for _ in range(2))
    late = first.batch(13)
    for k in range(14):
        batch = second.batch(k)
    for name, array in late.items():
        np.testing.assert_array_equal(array, batch[name])
    assert first.total_weight(13) == np.count_nonzero(late["target_output"])


def test_too_short_a_text_is_refused(corpus):
    with pytest.raises(InputError, match="12 pieces of 5 tokens, but a batch 13 rows"):
        ContiguousStream(corpus, rows=13, length=LENGTH, seed=1)


@pytest.mark.parametrize("rows", [1, 5, 12, 40])
def test_validation_reads_each_token_once(corpus, rows):
    batches = list(contiguous_batches(corpus, rows, LENGTH))
    used = min(rows, 12)
    text = [
        [token for batch in batches for token in batch["target_output"][row] if token]
        for row in range(used)
    ]
    assert sum(text, []) == whole(corpus)
    assert not batches[0]["carried"].any()
    assert all(len(batch["carried"]) == used for batch in batches)
