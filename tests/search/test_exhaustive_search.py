"""A beam as wide as the search space, against all targets under every normalization and rule.

The rules are checked on complete targets here. This reveals a step-by-step search that prunes
too much or too little, and a search that stops while a live hypothesis could still win.
"""

import functools

import numpy as np
import pytest
from chain_model import ChainModel, coverage_of, logits_of
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import (
    END,
    Rules,
    assert_best_of,
    exhaustive_search,
    results_of,
)
from weekly import SLOW_AND_WEEKLY

from keras_seq import backend
from keras_seq.search import beam_search

pytestmark = pytest.mark.jax

# Steps, states and vocabulary of every table; at most TABLES rows in a batch.
TABLES, STEPS, STATES, VOCABULARY = 3, 5, 7, 7
# A ratio of 1 and 2 extra tokens give limits of 3, 4 and 5.
SOURCES = np.array([[4, 0, 0], [5, 9, 0], [6, 9, 9]], "int32")
LIMITS = (3, 4, 5)
# Three words and a limit of 5: 1 + 3 + 9 + 27 + 81 targets end, and 243 are truncated.
SPACE = 364
ANYTHING = (Rules(), Rules(), Rules())
PREFIXES = np.array([[5, 5], [4, 0], [0, 0]], "int32")


class Case:
    """Search options, and the equivalent `Rules` and length limit of each row."""

    def __init__(self, options, rules=ANYTHING, limits=LIMITS):
        self.options = {"n_best": 4, **options}
        self.rules, self.limits = rules, limits


def same(**rules):
    return (Rules(**rules),) * 3


SEQUENCES = ((4, 5), (6, END), (5, 5, 6))
# The limit leaves room for at least two tokens after a prefix.
BEGUN = {"prefix": PREFIXES}
CASES = {
    "average 1, all of them": Case({"n_best": SPACE}),
    "average 0.3": Case({"alpha": 0.3}),
    "average 3, the best": Case({"alpha": 3.0, "n_best": 1}),
    "gnmt 0.6": Case({"length_normalization": "gnmt", "alpha": 0.6}),
    "gnmt 1.5": Case({"length_normalization": "gnmt", "alpha": 1.5}),
    "none": Case({"length_normalization": "none"}),
    "coverage, all of them": Case({"coverage_penalty": 0.4, "n_best": SPACE}),
    "coverage, gnmt": Case({"coverage_penalty": 2.0, "length_normalization": "gnmt"}),
    "least": Case({"min_length": 3}, same(least=3)),
    "least by source": Case(
        {"min_length_ratio": 1.0, "length_normalization": "none"},
        (Rules(least=1), Rules(least=2), Rules(least=3)),
    ),
    "2-grams": Case({"no_repeat_ngram_size": 2}, same(ngram=2)),
    "sequences": Case({"forbidden_sequences": SEQUENCES}, same(sequences=SEQUENCES)),
    "a word": Case({"forbidden_tokens": (0, 1, 2, 5)}, same(forbidden=(0, 1, 2, 5))),
    "repetition": Case({"repetition_penalty": 1.6}, same(repetition=1.6)),
    "prefix": Case(BEGUN, (Rules(prefix=(5, 5)), Rules(prefix=(4,)), Rules()), (4, 4, 5)),
    "all": Case(
        {
            **BEGUN,
            "length_normalization": "gnmt",
            "alpha": 0.8,
            "coverage_penalty": 0.5,
            "min_length": 3,
            "no_repeat_ngram_size": 1,
            "repetition_penalty": 1.3,
            "forbidden_sequences": SEQUENCES,
            "patience": 2.0,
        },
        tuple(
            Rules(least=3, ngram=1, repetition=1.3, sequences=SEQUENCES, prefix=prefix)
            for prefix in ((5, 5), (4,), ())
        ),
        (4, 4, 5),
    ),
}
WEEKLY = (
    "average 0.3",
    "average 3, the best",
    "gnmt 1.5",
    "none",
    "coverage, gnmt",
    "least",
    "a word",
)


@functools.cache
def searcher(name):
    """A compiled search and the model whose table it reads at each call."""
    model = ChainModel(np.zeros((TABLES, STEPS, STATES, VOCABULARY)))
    options = {
        "beam_size": SPACE,
        "max_length": STEPS,
        "max_length_ratio": 1.0,
        "max_length_extra": 2,
        **CASES[name].options,
    }
    search = backend.compiled(
        lambda source: beam_search(model, source, **options), model.variables, ranks=[2]
    )
    return model, search


@pytest.mark.parametrize(
    "name",
    # Further values of an option that another case has, too.
    [pytest.param(name, marks=SLOW_AND_WEEKLY if name in WEEKLY else []) for name in CASES],
)
@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([0.0, 0.3, 1.0, 4.0]),
    shift=st.sampled_from([-2.0, 0.0, 2.0]),
)
def test_beam_as_wide_as_the_search_space_finds_the_best_targets(name, seed, scale, shift):
    # Scale 0: a model that is unsure at first and then sure, so what looks poor early wins.
    scales = np.array([scale] * STEPS if scale else [1.0] + [8.0] * (STEPS - 1))
    drawn = np.random.default_rng(seed).normal(size=(TABLES, STEPS, STATES, VOCABULARY))
    drawn *= scales[:, None, None]
    # The shift makes ends rare or common.
    drawn[..., END] += shift
    case = CASES[name]
    model, search = searcher(name)
    model.tables.assign(drawn.astype("float32"))
    result = search(SOURCES)
    options = case.options
    for row, (rules, limit) in enumerate(zip(case.rules, case.limits, strict=True)):
        logits = logits_of(drawn[row])
        expected = exhaustive_search(
            logits,
            VOCABULARY,
            limit,
            options.get("length_normalization", "average"),
            options.get("alpha", 1.0),
            rules,
            coverage_of(logits, SOURCES[row], options.get("coverage_penalty", 0.0)),
        )
        found = results_of(result, row)
        assert len(found) == min(options["n_best"], len(expected))
        assert_best_of(found, expected)
