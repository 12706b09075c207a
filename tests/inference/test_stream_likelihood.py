"""Log-probabilities of packed text, against the model's logits for each token."""

import keras
import numpy as np
import pytest
from chain_model import log_softmax

from keras_seq.inference.likelihood import LikelihoodScorer
from keras_seq.inference.stream_likelihood import stream_likelihoods
from keras_seq.models import TransformerLanguageModel
from keras_seq.text import Tokenizer

BOS, EOS = 2, 3
LINES = ["to be", "", "or not to be", "that", "is"]


@pytest.fixture(scope="module")
def scorer():
    keras.utils.set_random_seed(1)
    tokenizer = Tokenizer.train(LINES, kind="char", size=300)
    model = TransformerLanguageModel(
        tokenizer.vocabulary_size, num_layers=1, units=8, feedforward_units=8, num_heads=2
    )
    return LikelihoodScorer(model, tokenizer, tokenizer), model, tokenizer


def by_numpy(model, context, token):
    """The log-probability of a token after its context, from the logits of the model."""
    # Padded because Keras warns about a softmax over one step.
    inputs = {"source": [[EOS, 0]], "target": [[BOS, *context, 0]]}
    logits = model({name: np.array(ids, "int32") for name, ids in inputs.items()})
    return log_softmax(keras.ops.convert_to_numpy(logits)[0, len(context)].astype("float64"))[token]


@pytest.mark.parametrize("length", [4, 7, 100])
def test_each_token_has_at_least_half_a_piece_of_context(scorer, length):
    score, model, tokenizer = scorer
    stream = []
    for row in tokenizer.encode(LINES):
        stream += [BOS, *row, EOS]
    del stream[0]
    step = length // 2
    expected = []
    for place, token in enumerate(stream):
        # The first piece that contains the token.
        start = 0 if place < length else step * -(-(place + 1 - length) // step)
        assert place - start >= min(place, length - step)
        expected.append(by_numpy(model, stream[start:place], token))
    found = stream_likelihoods(score, LINES, length)
    assert [one.tokens[:-1] for one in found] == list(map(tuple, tokenizer.encode(LINES)))
    values = iter(expected)
    for one in found:
        own = [next(values) for _ in one.tokens]
        np.testing.assert_allclose(one.log_probabilities, own, atol=1e-4)
        # The certain begin token of the next line.
        next(values, None)
