"""Every rule for targets, alone and combined, against a plain Python search."""

import functools

import numpy as np
import pytest
from chain_model import ChainModel, chain_of, coverage_of, logits_of
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import (
    END,
    Rules,
    assert_same_results,
    constrained,
    plain_beam_search,
    results_of,
)

from keras_seq import backend
from keras_seq.search import beam_search

pytestmark = pytest.mark.jax

TABLES, STEPS, STATES, VOCABULARY = 3, 8, 7, 8
# Source lengths 1, 2 and 4: a ratio of 1 and 4 extra tokens give limits of 5, 6 and 8.
SOURCES = np.array([[4, 0, 0, 0], [5, 9, 0, 0], [6, 9, 9, 9]], "int32")
LIMITS = (5, 6, 8)
PREFIXES = np.array([[5, 5, 5], [4, 7, 0], [0, 0, 0]], "int32")

# Search options, and the equivalent `Rules`. Each pair is compiled once.
CONFIGURATIONS = {
    "least": ({"min_length": 3}, {"least": [3, 3, 3]}),
    "least by source": ({"min_length_ratio": 1.0}, {"least": [1, 2, 4]}),
    "1-grams": ({"no_repeat_ngram_size": 1}, {"ngram": 1}),
    "2-grams": ({"no_repeat_ngram_size": 2}, {"ngram": 2}),
    "3-grams": ({"no_repeat_ngram_size": 3, "beam_size": 1}, {"ngram": 3}),
    "repetition": ({"repetition_penalty": 1.7}, {"repetition": 1.7}),
    "attraction": ({"repetition_penalty": 0.6}, {"repetition": 0.6}),
    "sequences": (
        {"forbidden_sequences": [(4, 5), (6, 6, 7), (7, END)]},
        {"sequences": ((4, 5), (6, 6, 7), (7, END))},
    ),
    "prefix": ({"prefix": PREFIXES}, {"prefix": [(5, 5, 5), (4, 7), ()]}),
    "all": (
        {
            "min_length": 4,
            "no_repeat_ngram_size": 2,
            "repetition_penalty": 1.3,
            "forbidden_sequences": [(4, 4)],
            "prefix": PREFIXES,
            "n_best": 3,
            "patience": 2.0,
        },
        {
            "least": [4, 4, 4],
            "ngram": 2,
            "repetition": 1.3,
            "sequences": ((4, 4),),
            "prefix": [(5, 5, 5), (4, 7), ()],
        },
    ),
}
tables = st.builds(
    lambda seed, scale, shift: draw_tables(seed, scale, shift),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.5, 1.0, 3.0]),
    st.sampled_from([-2.0, 0.0, 2.0]),
)


def draw_tables(seed, scale, shift):
    generator = np.random.default_rng(seed)
    drawn = scale * generator.normal(size=(TABLES, STEPS, STATES, VOCABULARY))
    drawn[..., END] += shift
    return drawn.astype("float32")


def compiled(options, source=SOURCES):
    """A compiled search and the model whose table it reads at each call."""
    model = ChainModel(np.zeros((TABLES, STEPS, STATES, VOCABULARY)))
    options = {"beam_size": 3, "max_length_ratio": 1.0, "max_length_extra": 4} | options
    search = backend.compiled(
        lambda source: beam_search(model, source, **options), model.variables, ranks=[2]
    )
    return model, search, options


searcher = functools.cache(lambda name: compiled(CONFIGURATIONS[name][0]))


def of_row(rules, row):
    rows = {name: rule[row] if isinstance(rule, list) else rule for name, rule in rules.items()}
    return Rules(**rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGURATIONS)
@settings(max_examples=25)
@given(drawn=tables)
def test_constrained_search_equals_plain_python_search(name, drawn):
    model, search, options = searcher(name)
    model.tables.assign(drawn)
    result = search(SOURCES)
    # The limit leaves room for at least four tokens after a prefix.
    limits = (7, 6, 8) if "prefix" in options else LIMITS
    for row, limit in enumerate(limits):
        chain = constrained(logits_of(drawn[row]), of_row(CONFIGURATIONS[name][1], row))
        expected = plain_beam_search(
            chain,
            options["beam_size"],
            options.get("n_best", 1),
            limit,
            patience=options.get("patience", 1.0),
        )
        assert_same_results(results_of(result, row), expected)


@pytest.mark.parametrize(("factor", "normalization"), [(0.3, "gnmt"), (2.0, "average")])
@settings(max_examples=25)
@given(drawn=tables)
def test_coverage_penalty_equals_plain_python_search(factor, normalization, drawn):
    model, search, options = covering(factor, normalization)
    model.tables.assign(drawn)
    result = search(SOURCES)
    for row, limit in enumerate(LIMITS):
        logits = logits_of(drawn[row])
        expected = plain_beam_search(
            chain_of(drawn[row]),
            options["beam_size"],
            options["n_best"],
            limit,
            normalization,
            coverage=coverage_of(logits, SOURCES[row], factor),
        )
        assert_same_results(results_of(result, row), expected)


covering = functools.cache(
    lambda factor, normalization: compiled(
        {"coverage_penalty": factor, "length_normalization": normalization, "n_best": 2}
    )
)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"min_length": 0}, "`min_length` must be an integer from 1 to 10,000, received 0"),
        (
            {"min_length": 9, "max_length": 8},
            "`min_length` must be at most `max_length`, 8, received 9",
        ),
        (
            {"min_length_ratio": 3.0},
            "`min_length_ratio` must be at most `max_length_ratio`, 2.0, received 3.0",
        ),
        ({"forbidden_tokens": (1, END)}, "the end token, 3, cannot be forbidden"),
        ({"forbidden_sequences": [(END,)]}, "the end token, 3, cannot be forbidden"),
        ({"forbidden_sequences": [()]}, "must not contain an empty sequence"),
        (
            {"no_repeat_ngram_size": -1},
            "`no_repeat_ngram_size` must be an integer from 0 to 32, received -1",
        ),
        (
            {"repetition_penalty": 0.0},
            "`repetition_penalty` must be a number from 0.01 to 100, received 0.0",
        ),
        ({"patience": 0.0}, "`patience` must be a number from 0.001 to 1,000, received 0.0"),
        (
            {"coverage_penalty": -1.0},
            "`coverage_penalty` must be a number from 0 to 100, received -1.0",
        ),
    ],
)
def test_impossible_search_constraints_raise_value_error(options, said):
    with pytest.raises(ValueError, match=said):
        beam_search(ChainModel(np.zeros((1, 2, 3, 8))), SOURCES, **options)
