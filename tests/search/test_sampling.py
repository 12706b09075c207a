"""Sampling: the frequencies of samples, and their dependence on seed and source only."""

import functools
import itertools

import keras
import numpy as np
import pytest
from chain_model import ChainModel, chain_of, logits_of
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import END, Rules, constrained, results_of, uniform_number, weights_to_draw
from scipy import stats

from keras_seq import backend
from keras_seq.search import sample
from keras_seq.search.random_numbers import row_keys, uniform_numbers

pytestmark = [pytest.mark.jax, pytest.mark.torch]

STEPS, STATES, VOCABULARY, LIMIT = 3, 5, 7, 3
WORDS = range(END + 1, VOCABULARY)
SOURCE = np.array([[4, 9, 3]], "int32")
TABLE = np.random.default_rng(7).normal(size=(1, STEPS, STATES, VOCABULARY)).astype("float32")


@functools.cache
def sampler(table=None, **options):
    model = ChainModel(TABLE)
    options = {"max_length": LIMIT, "max_length_extra": LIMIT} | options
    return backend.compiled(
        lambda source: sample(model, source, **options), model.variables, ranks=[2]
    )


def target_probabilities(*rules):
    """Probabilities of all ended and truncated targets of at most LIMIT tokens, by enumeration."""
    chain = constrained(logits_of(TABLE[0]), Rules())
    found = {}
    for length in range(LIMIT + 1):
        for words in itertools.product(WORDS, repeat=length):
            target = words if length == LIMIT else (*words, END)
            steps = [
                dict(weights_to_draw(chain(target[:i]), *rules)).get(token, 0.0)
                for i, token in enumerate(target)
            ]
            found[target] = float(np.prod(steps))
    assert sum(found.values()) == pytest.approx(1)
    return found


@pytest.mark.parametrize(
    "rules",
    [(1.0, 0, 1.0), (0.5, 0, 1.0), (2.0, 0, 1.0), (1.0, 2, 1.0), (1.3, 3, 0.7), (1, 0, 0.6)],
)
def test_sample_frequencies_match_the_expected_probabilities(rules):
    temperature, top_k, top_p = rules
    count = 20_000
    result = sampler(n_best=count, seed=5, temperature=temperature, top_k=top_k, top_p=top_p)(
        SOURCE
    )
    counts = dict.fromkeys(expected := target_probabilities(*rules), 0)
    for found in results_of(result, 0):
        counts[found.tokens] += 1
    assert all(expected[target] > 0 for target, times in counts.items() if times)
    # The chi-square test requires pooling rare targets.
    often = [target for target in expected if expected[target] * count >= 5]
    observed = [counts[target] for target in often]
    wanted = [expected[target] * count for target in often]
    if count - sum(wanted) >= 5:
        observed.append(count - sum(observed))
        wanted.append(count - sum(wanted))
    wanted = np.array(wanted) * sum(observed) / sum(wanted)
    assert stats.chisquare(observed, wanted).pvalue > 1e-4


def test_sample_scores_are_model_scores_despite_temperature_and_top_k():
    chain = chain_of(TABLE[0])
    result = sampler(n_best=50, seed=1, temperature=0.7, top_k=3)(SOURCE)
    found = results_of(result, 0)
    for one in found:
        total = sum(chain(one.tokens[:i])[token] for i, token in enumerate(one.tokens))
        assert one.score == pytest.approx(total / len(one.tokens), abs=1e-5)
        assert one.truncated == (one.tokens[-1] != END)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_sampling_with_top_k_1_equals_greedy_search():
    (found,) = results_of(sampler(n_best=1, top_k=1)(SOURCE), 0)
    chain, tokens = chain_of(TABLE[0]), ()
    while len(tokens) < LIMIT and tokens[-1:] != (END,):
        scores = chain(tokens).copy()
        scores[:END] = -np.inf
        tokens = (*tokens, int(scores.argmax()))
    assert found.tokens == tokens


def test_samples_of_a_row_are_the_same_in_any_batch_and_padding():
    alone = results_of(sampler(n_best=4, seed=3)(SOURCE), 0)
    batch = np.array([[4, 8, 3, 0, 0], [4, 9, 3, 0, 0], [4, 9, 9, 9, 3]], "int32")
    result = sampler(n_best=4, seed=3)(batch)
    assert results_of(result, 1) == alone
    assert results_of(result, 0) != alone != results_of(result, 2)
    # A larger `n_best` includes the samples of a smaller one.
    more = results_of(sampler(n_best=40, seed=3)(SOURCE), 0)
    assert set(alone) <= set(more)


@pytest.mark.slow
def test_samples_differ_between_seeds_and_repeat_with_one_seed():
    draws = [results_of(sampler(n_best=6, seed=seed)(SOURCE), 0) for seed in range(5)]
    assert len({tuple(found) for found in draws}) == 5
    again = sampler(n_best=6, seed=4)(SOURCE)
    assert results_of(again, 0) == draws[4]


@settings(max_examples=30)
@given(
    # Padded to one width below, so that JAX compiles only once.
    ids=st.lists(st.integers(1, 2**31 - 1), min_size=1, max_size=6),
    seed=st.integers(0, 2**32 - 1),
    step=st.integers(0, 300),
)
def test_random_numbers_equal_plain_integer_arithmetic(ids, seed, step):
    """Integer arithmetic makes samples identical on all backends."""
    expected = [uniform_number(ids, seed, n, step) for n in range(3)]
    keys = row_keys(keras.ops.array([[*ids, *[0] * (8 - len(ids))]], "int32"), seed)
    found = keras.ops.convert_to_numpy(uniform_numbers(keys, 3, keras.ops.array(step, "int32")))
    assert found.tolist() == [expected]


def test_random_numbers_are_uniform_and_uncorrelated():
    generator = np.random.default_rng(1)
    sources = generator.integers(4, 8000, size=(40, 12)).astype("int32")
    keys = row_keys(keras.ops.array(sources), 0)
    drawn = np.stack(
        [keras.ops.convert_to_numpy(uniform_numbers(keys, 20, step)) for step in range(60)]
    )  # (steps, rows, samples)
    counts, _ = np.histogram(drawn, bins=64, range=(0, 1))
    assert stats.chisquare(counts).pvalue > 1e-4
    for axis in range(3):
        one, next_one = (
            np.moveaxis(drawn, axis, 0)[:-1].ravel(),
            np.moveaxis(drawn, axis, 0)[1:].ravel(),
        )
        assert abs(np.corrcoef(one, next_one)[0, 1]) < 4 / np.sqrt(one.size)
        pairs, _, _ = np.histogram2d(one, next_one, bins=8, range=[(0, 1), (0, 1)])
        assert stats.chisquare(pairs.ravel()).pvalue > 1e-4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_best": 0}, "`n_best` must be an integer from 1 to 100,000, received 0"),
        ({"temperature": 0.0}, "`temperature` must be a number from 0.001 to 1,000, received 0.0"),
        ({"top_k": -1}, "`top_k` must be an integer from 0 to 1,000,000, received -1"),
        ({"top_p": 0.0}, "`top_p` must be a number above 0 and at most 1, received 0.0"),
        ({"top_p": 1.1}, "`top_p` must be a number above 0 and at most 1, received 1.1"),
        ({"seed": 2**32}, "`seed` must be an integer from 0 to 4,294,967,295, received 4294967296"),
    ],
    ids=str,
)
def test_invalid_sampling_arguments_raise_value_error(options, message):
    with pytest.raises(ValueError, match=message):
        sample(ChainModel(TABLE), SOURCE, **options)
