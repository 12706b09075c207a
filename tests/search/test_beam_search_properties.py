"""Beam search on random automata, against lists in plain Python and against all targets."""

import functools

import numpy as np
import pytest
from chain_model import ChainModel, chain_of
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import assert_same_results, exhaustive_search, plain_beam_search, results_of

from keras_seq import backend
from keras_seq.search import beam_search

# Steps, states and vocabulary of every table; at most TABLES rows in a batch. As every step of an
# automaton has its own row of numbers, no two hypotheses have the same sum.
TABLES, STEPS, STATES, VOCABULARY = 3, 6, 7, 7
# Lengths of the sources: with ratio 1 and 2 tokens more, limits of 3, 5 and 6.
SOURCES = np.array([[4, 0, 0, 0], [5, 9, 9, 0], [6, 9, 9, 9]], "int32")
LIMITS = (3, 5, 6)

# Each is compiled once, so there are few: beam, n-best, normalization, alpha.
CONFIGURATIONS = [
    (1, 1, "average", 1.0),
    (2, 1, "none", 0.0),
    (3, 3, "average", 0.6),
    (4, 2, "gnmt", 1.0),
]
# Values of one scale give flat and peaked distributions; the shift makes ends rare or common.
tables = st.builds(
    lambda seed, scale, shift: draw_tables(seed, scale, shift),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.3, 1.0, 4.0]),
    st.sampled_from([-2.0, 0.0, 2.0]),
)


def draw_tables(seed, scale, shift):
    generator = np.random.default_rng(seed)
    drawn = scale * generator.normal(size=(TABLES, STEPS, STATES, VOCABULARY))
    drawn[..., 3] += shift
    return drawn.astype("float32")


@functools.cache
def searcher(beam_size, n_best, normalization, alpha):
    """A compiled search and the model whose table it reads at each call."""
    model = ChainModel(np.zeros((TABLES, STEPS, STATES, VOCABULARY)))
    search = backend.compiled(
        lambda source: beam_search(
            model,
            source,
            beam_size=beam_size,
            n_best=n_best,
            length_normalization=normalization,
            alpha=alpha,
            max_length=STEPS,
            max_length_ratio=1.0,
            max_length_extra=2,
        ),
        model.variables,
        ranks=[2],
    )
    return model, search


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=str)
@settings(max_examples=40, deadline=None)
@given(drawn=tables)
def test_equals_lists_in_plain_python(configuration, drawn):
    model, search = searcher(*configuration)
    model.tables.assign(drawn)
    result = search(SOURCES)
    for row, limit in enumerate(LIMITS):
        beam_size, n_best, normalization, alpha = configuration
        expected = plain_beam_search(
            chain_of(drawn[row]), beam_size, n_best, limit, normalization, alpha
        )
        assert_same_results(results_of(result, row), expected)


# Three words and a limit of 5: 1 + 3 + 9 + 27 + 81 targets that end, and 243 that are cut.
WIDE = 364
SHORT_SOURCES, SHORT_LIMITS = SOURCES[:, :3], (3, 5, 5)


@pytest.mark.parametrize(("normalization", "alpha"), [("average", 1.0), ("gnmt", 0.8), ("none", 0)])
@settings(max_examples=15, deadline=None)
@given(drawn=tables)
def test_a_beam_as_wide_as_the_space_finds_the_best_of_all_targets(normalization, alpha, drawn):
    """Which also shows that no row stops while a live hypothesis could still win."""
    model, search = searcher(WIDE, 3, normalization, alpha)
    model.tables.assign(drawn)
    result = search(SHORT_SOURCES)
    for row, limit in enumerate(SHORT_LIMITS):
        expected = exhaustive_search(chain_of(drawn[row]), VOCABULARY, limit, normalization, alpha)
        assert_same_results(results_of(result, row), expected[:3])
