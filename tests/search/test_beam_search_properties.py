"""Beam search on random automata, against plain Python that searches to the limit."""

import functools
import math

import numpy as np
import pytest
from chain_model import ChainModel, chain_of, logits_of
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import (
    END,
    Rules,
    assert_same_results,
    constrained,
    greedy_search,
    plain_beam_search,
    results_of,
)

from keras_seq import backend
from keras_seq.search import beam_search

pytestmark = pytest.mark.jax

# Steps, states and vocabulary of every table; at most TABLES rows in a batch. Each step of an
# automaton has its own row of numbers, so no two hypotheses have the same sum.
TABLES, STEPS, STATES, VOCABULARY = 3, 6, 7, 7
# Source lengths 1, 3 and 4: a ratio of 1 and 2 extra tokens give limits of 3, 5 and 6.
SOURCES = np.array([[4, 0, 0, 0], [5, 9, 9, 0], [6, 9, 9, 9]], "int32")
LIMITS = (3, 5, 6)

# The scale makes distributions flat or peaked; the shift makes ends rare or common. Scale 0 stands
# for models that are unsure at first and then sure: a hypothesis that looks poor early wins.
tables = st.builds(
    lambda seed, scale, shift: draw_tables(seed, scale, shift),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.3, 1.0, 4.0]),
    st.sampled_from([-2.0, 0.0, 2.0]),
)


def draw_tables(seed, scale, shift):
    scales = np.array([scale] * STEPS if scale else [1.0] + [8.0] * (STEPS - 1))
    drawn = np.random.default_rng(seed).normal(size=(TABLES, STEPS, STATES, VOCABULARY))
    drawn *= scales[:, None, None]
    drawn[..., END] += shift
    return drawn.astype("float32")


@functools.cache
def searcher(vocabulary=VOCABULARY, **options):
    """A compiled search and the model whose table it reads at each call."""
    model = ChainModel(np.zeros((TABLES, STEPS, STATES, vocabulary)))
    options = {"max_length": STEPS, "max_length_ratio": 1.0, "max_length_extra": 2} | options
    search = backend.compiled(
        lambda source: beam_search(model, source, **options), model.variables, ranks=[2]
    )
    return model, search


# Few, because each is compiled once: beam, n-best, normalization, alpha, patience.
CONFIGURATIONS = [
    (1, 1, "average", 1.0, 1.0),
    (2, 1, "none", 0.0, 1.0),
    (3, 3, "average", 0.6, 1.0),
    (3, 1, "average", 3.0, 1.0),
    (4, 2, "gnmt", 1.0, 1.0),
    (3, 2, "average", 1.0, 0.4),
    (3, 2, "average", 1.0, 1.5),
]


@pytest.mark.slow
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
@settings(max_examples=25, deadline=None)
@given(drawn=tables)
def test_beam_search_equals_plain_python_search(configuration, drawn):
    beam_size, n_best, normalization, alpha, patience = configuration
    model, search = searcher(
        beam_size=beam_size,
        n_best=n_best,
        length_normalization=normalization,
        alpha=alpha,
        patience=patience,
    )
    model.tables.assign(drawn)
    result = search(SOURCES)
    for row, limit in enumerate(LIMITS):
        expected = plain_beam_search(
            chain_of(drawn[row]), beam_size, n_best, limit, normalization, alpha, patience=patience
        )
        found = results_of(result, row)
        assert_same_results(found, expected)
        # Sorted, ended hypotheses before truncated ones, without duplicates.
        ranks = [(one.truncated, -one.score) for one in found]
        assert ranks == sorted(ranks)
        assert len({one.tokens for one in found}) == len(found)


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ({}, {}),
        ({"length_normalization": "gnmt", "coverage_penalty": 1.0}, {}),
        (
            {"min_length": 3, "no_repeat_ngram_size": 1, "repetition_penalty": 1.4},
            {"least": 3, "ngram": 1, "repetition": 1.4},
        ),
    ],
    ids=["free", "scored otherwise", "ruled"],
)
@settings(max_examples=25, deadline=None)
@given(drawn=tables)
def test_a_beam_of_1_is_greedy_search(options, rules, drawn):
    """The score of the only hypothesis does not influence the search."""
    model, search = searcher(beam_size=1, **options)
    model.tables.assign(drawn)
    result = search(SOURCES)
    for row, limit in enumerate(LIMITS):
        chain = constrained(logits_of(drawn[row]), Rules(**rules))
        (found,) = results_of(result, row)
        (expected,) = greedy_search(chain, limit)
        assert found.tokens == expected.tokens
        assert found.truncated == expected.truncated
        if "coverage_penalty" not in options:
            assert found.score == pytest.approx(expected.score, abs=1e-4)


# A multiple of the SIMD vector size. If rows ended within a vector, the place in the batch would
# select one of two formulas for a row, and their results differ in the last bit.
ALIGNED = 16
# So low that adding any other score is lost in rounding, in float32 and in float64.
HOPELESS, LOST = -1e9, -(2.0**80)


@pytest.mark.parametrize("ruled", [False, True])
# All hypotheses of a batch, 6 or 48, are a remainder or fill whole SIMD vectors, which on some
# processors differ in the last bit.
@pytest.mark.parametrize("beam_size", [2, 16])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), good=st.integers(1, 4))
def test_ties_go_to_the_earlier_hypothesis_and_then_to_the_lower_id(beam_size, ruled, seed, good):
    """Every state has the same number of equally likely tokens, so most choices are ties."""
    generator = np.random.default_rng(seed)
    likely = generator.permuted(
        np.broadcast_to(np.arange(ALIGNED) < good, (TABLES, STEPS, STATES, ALIGNED)), axis=-1
    )
    # A rule that never applies selects the other code path of the search.
    rule = {"forbidden_sequences": ((0, 0),)} if ruled else {}
    model, search = searcher(
        ALIGNED,
        beam_size=beam_size,
        n_best=2,
        length_normalization="none",
        forbidden_tokens=(0,),
        **rule,
    )
    model.tables.assign(np.where(likely, 0.0, HOPELESS).astype("float32"))
    result = search(SOURCES)
    for row, limit in enumerate(LIMITS):

        def chain(tokens, row=row):
            logits = logits_of(likely[row])(tokens)
            return np.where(logits > 0, -math.log(good), LOST)

        expected = plain_beam_search(chain, beam_size, 2, limit, "none", forbidden=(0,))
        assert [(one.tokens, one.truncated) for one in results_of(result, row)] == [
            (one.tokens, one.truncated) for one in expected
        ]


@functools.cache
def aligned():
    model = ChainModel(np.zeros((TABLES, STEPS, STATES, ALIGNED)))
    options = {"beam_size": ALIGNED, "n_best": 3, "coverage_penalty": 0.2, "min_length": 2}
    search = backend.compiled(
        lambda source: beam_search(
            model, source, max_length_ratio=1.0, max_length_extra=2, **options
        ),
        model.variables,
        ranks=[2],
    )
    return model, search


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    order=st.permutations(range(TABLES)),
    more=st.sampled_from([0, 3]),
)
def test_beam_search_is_bitwise_equal_in_any_batch_and_padding(seed, order, more):
    """An ALIGNED vocabulary gives every row the same arithmetic, so results are bit-identical."""
    model, search = aligned()
    model.tables.assign(
        np.random.default_rng(seed).normal(size=(TABLES, STEPS, STATES, ALIGNED)).astype("float32")
    )
    together = search(SOURCES)
    others = search(np.pad(SOURCES[order], [(0, 0), (0, more)]))
    alone = search(SOURCES[:1, :2])
    for place, row in enumerate(order):
        assert results_of(others, place) == results_of(together, row)
    assert results_of(alone, 0) == results_of(together, 0)
