"""Beam search on a Transformer, and on tables with answers worked out by hand."""

import functools
import itertools
import math

import keras
import numpy as np
import pytest
import reference_transformer as reference
from chain_model import ChainModel, chain_of
from plain_search import END, FORBIDDEN, START, Found, assert_same_results, penalty, results_of

from keras_seq import backend
from keras_seq.models import Transformer
from keras_seq.search import SearchResult, beam_search

pytestmark = [pytest.mark.jax, pytest.mark.torch]

# ---------------------------------------------------------------- on a Transformer

VOCABULARY, HEADS = 9, 2
NOT_4_5 = (0, 1, 2, 6, 7, 8)
SOURCE = np.array([[5, 8, 4, 3], [7, 3, 0, 0], [3, 0, 0, 0], [8, 8, 3, 0]], "int32")


@functools.cache
def transformer():
    model = Transformer(VOCABULARY, VOCABULARY, 1, 1, units=8, feedforward_units=8, num_heads=HEADS)
    reference.randomize(model, seed=3)
    # Larger logits than those of a new model, so that hypotheses differ.
    embedding = model.get_layer("target_embedding").embeddings
    embedding.assign(embedding * 2)
    return model


@functools.cache
def weights():
    return reference.named_arrays(transformer())


@functools.cache
def transformer_search(**options):
    model = transformer()
    return backend.compiled(
        lambda source: beam_search(model, source, **options), model.variables, ranks=[2]
    )


def log_probabilities(source, tokens):
    """Next-token log-probabilities after START and each of `tokens`, by a slow numpy model."""
    target = np.array([START, *tokens])
    logits = reference.transformer_row(source[source != 0], target, weights(), HEADS, "pre")
    return reference.log_softmax(logits)


def limits_of(source, max_length=256, ratio=2.0, extra=10):
    return [min(max_length, int((row != 0).sum() * ratio) + extra) for row in source]


def test_a_beam_of_1_is_greedy_search():
    results = transformer_search(beam_size=1, max_length=8)(SOURCE)
    for row, limit in enumerate(limits_of(SOURCE, max_length=8)):
        tokens, total = [], 0.0
        while len(tokens) < limit and (not tokens or tokens[-1] != END):
            scores = log_probabilities(SOURCE[row], tokens)[-1]
            allowed = np.where(np.isin(np.arange(VOCABULARY), FORBIDDEN), -np.inf, scores)
            tokens.append(int(allowed.argmax()))
            total += scores[tokens[-1]]
        expected = Found(tuple(tokens), total / len(tokens), tokens[-1] != END)
        assert_same_results(results_of(results, row), [expected])


@pytest.mark.parametrize(("normalization", "alpha"), [("average", 1.0), ("gnmt", 0.6), ("none", 0)])
def test_wide_beam_equals_exhaustive_search_on_a_transformer(normalization, alpha):
    # Words 4 and 5 and at most three tokens: 7 targets end, 8 are truncated.
    options = {"length_normalization": normalization, "alpha": alpha, "forbidden_tokens": NOT_4_5}
    results = transformer_search(beam_size=15, n_best=4, max_length=3, **options)(SOURCE)
    for row in range(len(SOURCE)):
        found = []
        for length in range(3):
            for words in itertools.product([4, 5], repeat=length):
                scores = log_probabilities(SOURCE[row], words)
                total = sum(scores[i, token] for i, token in enumerate((*words, END)))
                score = total / penalty(length + 1, normalization, alpha)
                found.append(Found((*words, END), score, False))
        found.sort(key=lambda found: -found.score)
        assert_same_results(results_of(results, row), found[:4])


def test_search_result_has_the_documented_shapes_and_dtypes():
    result = transformer_search(beam_size=3, n_best=2, max_length=6)(SOURCE)
    assert tuple(result.tokens.shape) == (4, 2, 6)
    assert {tuple(part.shape) for part in result[1:]} == {(4, 2)}
    dtypes = [keras.backend.standardize_dtype(part.dtype) for part in result]
    assert dtypes == ["int32", "int32", "float32", "bool"]


# ---------------------------------------------------------------- on tables, by hand

STEPS, STATES, WORDS = 6, 7, 7
CHAIN = ChainModel(np.zeros((1, STEPS, STATES, WORDS)))
LINE = np.array([[4]], "int32")


def table_of(probabilities, otherwise=None):
    """Logits from `{prefix: {token: probability}}`; other prefixes are uniform or `otherwise`."""
    table = np.zeros((STEPS, STATES, WORDS))
    if otherwise:
        table[:] = logits_of(otherwise)
    written = {}
    for history, shares in probabilities.items():
        state = 0
        for token in history:
            state = (5 * state + token + 1) % STATES
        place = len(history), state
        assert place not in written, f"{history} shares a state with {written[place]}"
        written[place] = history
        table[place] = logits_of(shares)
    return table[None]


def logits_of(shares):
    assert abs(sum(shares.values()) - 1) < 1e-9
    return np.log([max(shares.get(token, 0), 1e-20) for token in range(WORDS)])


@functools.cache
def chain_search(**options):
    options = {"max_length": STEPS, "max_length_extra": STEPS} | options
    return backend.compiled(
        lambda source: beam_search(CHAIN, source, **options), CHAIN.variables, ranks=[2]
    )


def search_table(table, source=LINE, **options):
    CHAIN.tables.assign(table)
    return chain_search(**options)(source)


def test_eager_search_equals_compiled_search():
    table = np.random.default_rng(0).normal(size=(1, STEPS, STATES, WORDS))
    source = np.repeat(LINE, 2, axis=0)
    compiled = search_table(table, source, beam_size=3, n_best=2)
    eager = beam_search(
        CHAIN, source, beam_size=3, n_best=2, max_length=STEPS, max_length_extra=STEPS
    )
    assert isinstance(eager, SearchResult)
    for row in range(2):
        assert_same_results(results_of(eager, row), results_of(compiled, row), tolerance=1e-5)


SHORT_AND_LONG = {
    (): {END: 0.5, 4: 0.4, 5: 0.1},
    (4,): {5: 0.9, 4: 0.05, END: 0.05},
    (4, 5): {END: 1.0},
    # After the end token the model is certain, so extending a finished hypothesis looks cheap.
    (END,): {4: 1.0},
    (END, 4): {4: 1.0},
}


def test_a_finished_hypothesis_is_frozen_and_compared_by_its_own_length():
    """The sum favors the short target, 0.5 to 0.36; the mean favors the long one."""
    table = table_of(SHORT_AND_LONG)
    short = (END,)
    long = (4, 5, END)
    by_sum = search_table(table, beam_size=2, n_best=2, length_normalization="none")
    assert_same_results(
        results_of(by_sum, 0),
        [Found(short, math.log(0.5), False), Found(long, math.log(0.36), False)],
    )
    by_mean = search_table(table, beam_size=2, n_best=2, length_normalization="average")
    assert_same_results(
        results_of(by_mean, 0),
        [Found(long, math.log(0.36) / 3, False), Found(short, math.log(0.5), False)],
    )
    by_gnmt = search_table(table, beam_size=2, n_best=2, length_normalization="gnmt")
    # GNMT compares log(0.36) / (8 / 6) = -0.77 with log(0.5) = -0.69.
    assert_same_results(
        results_of(by_gnmt, 0),
        [
            Found(short, math.log(0.5), False),
            Found(long, math.log(0.36) / (8 / 6), False),
        ],
    )


def test_a_finished_hypothesis_is_not_pushed_out_by_longer_ones():
    """A search that extends past the end token divides 0.4 by 7 and prefers 4 4 and 4 5."""
    table = table_of({(): {4: 0.6, END: 0.4}, (4,): {4: 0.5, 5: 0.5}, (4, 4): {4: 0.5, 5: 0.5}})
    result = search_table(table, beam_size=2, n_best=1, length_normalization="none")
    assert_same_results(results_of(result, 0), [Found((END,), math.log(0.4), False)])


def goes_on(chain, beam_size, limit):
    """Beam search that extends finished hypotheses until all have ended, then cuts the best."""
    beam = [((), 0.0)]
    for _ in range(limit):
        beam = [
            ((*tokens, token), total + log_probability)
            for tokens, total in beam
            for token, log_probability in enumerate(chain(tokens))
        ]
        beam = sorted(beam, key=lambda pair: -pair[1])[:beam_size]
        if all(END in tokens for tokens, _ in beam):
            break
    best = beam[0][0]
    return best[: best.index(END) + 1]


def test_extending_hypotheses_past_the_end_token_loses_the_best_target():
    """KerasHub's `BeamSampler`, as of 0.32, extends finished hypotheses like any others.

    The best target is the end token alone, 0.5. After it the model, never trained there, finds all
    7 tokens equally likely, and 0.5 / 7 = 0.07 is less than the 0.3 * 0.9 of the target 4 END.
    """
    table = table_of({(): {END: 0.5, 4: 0.3, 5: 0.2}, (4,): {END: 0.9, 4: 0.1}})
    result = search_table(table, beam_size=2, length_normalization="none")
    assert_same_results(results_of(result, 0), [Found((END,), math.log(0.5), False)])
    assert goes_on(chain_of(table[0]), beam_size=2, limit=STEPS) == (4, END)


def test_poor_hypotheses_that_end_early_do_not_stop_the_search():
    table = table_of(
        {
            (): {4: 0.9, 5: 0.06, 6: 0.04},
            (4,): {4: 0.96, 5: 0.03, END: 0.01},
            (5,): {END: 0.9, 4: 0.1},
            (4, 4): {5: 0.97, END: 0.03},
            (4, 4, 5): {END: 1.0},
        }
    )
    result = search_table(table, beam_size=2)
    best = Found((4, 4, 5, END), math.log(0.9 * 0.96 * 0.97) / 4, False)
    assert_same_results(results_of(result, 0), [best])


def test_a_worse_start_can_win_in_a_beam_but_not_in_greedy_search():
    table = table_of(
        {(): {4: 0.6, 5: 0.4}, (4,): {4: 0.5, 5: 0.3, END: 0.2}, (5,): {END: 1.0}},
        otherwise={END: 0.3, 4: 0.4, 5: 0.3},
    )
    beam = search_table(table, beam_size=2, length_normalization="none")
    assert_same_results(results_of(beam, 0), [Found((5, END), math.log(0.4), False)])
    greedy = results_of(search_table(table, beam_size=1, length_normalization="none"), 0)
    assert greedy[0].tokens[0] == 4


def test_ties_go_to_the_earlier_hypothesis_and_to_the_lower_id():
    equal = table_of({})
    share = math.log(1 / WORDS)
    greedy = search_table(equal, beam_size=1, length_normalization="none")
    assert_same_results(results_of(greedy, 0), [Found((END,), share, False)])
    # Step 1 keeps 3, 4, 5. Step 2 keeps 3 and 4 after 4, in two slots. Step 3 keeps 3 after 4 4.
    result = search_table(equal, beam_size=3, n_best=3, length_normalization="none")
    assert_same_results(
        results_of(result, 0),
        [
            Found((END,), share, False),
            Found((4, END), 2 * share, False),
            Found((4, 4, END), 3 * share, False),
        ],
    )


def test_length_limit_follows_each_source_and_marks_truncation():
    never_ends = table_of({}, otherwise={4: 0.75, 5: 0.25})
    source = np.array([[4, 0, 0, 0], [4, 4, 0, 0], [4, 4, 4, 0], [4, 4, 4, 4], [0] * 4], "int32")
    result = search_table(
        never_ends, source, beam_size=2, max_length=5, max_length_ratio=0.5, max_length_extra=2
    )
    # The limit is floor(n / 2) + 2.
    for row, limit in enumerate([2, 3, 3, 4, 2]):
        expected = Found((4,) * limit, math.log(0.75), True)
        assert_same_results(results_of(result, row), [expected])
    result = search_table(
        never_ends, source, beam_size=2, max_length=3, max_length_ratio=0.5, max_length_extra=2
    )
    lengths = [len(results_of(result, row)[0].tokens) for row in range(5)]
    assert lengths == [2, 3, 3, 3, 2]


def test_hypothesis_that_ends_at_the_length_limit_is_not_truncated():
    table = table_of({(): {4: 1.0}, (4,): {END: 1.0}})
    result = search_table(table, beam_size=2, max_length=2)
    assert_same_results(results_of(result, 0), [Found((4, END), 0.0, False)])


def test_finished_hypotheses_rank_before_truncated_ones_each_best_first():
    table = table_of({(): {4: 0.5, END: 0.1, 5: 0.3, 6: 0.1}})
    result = search_table(table, beam_size=4, n_best=4, max_length=1)
    assert_same_results(
        results_of(result, 0),
        [
            Found((END,), math.log(0.1), False),
            Found((4,), math.log(0.5), True),
            Found((5,), math.log(0.3), True),
            Found((6,), math.log(0.1), True),
        ],
    )


def test_n_best_slots_without_a_hypothesis_are_empty():
    result = search_table(table_of({}), beam_size=3, n_best=3, forbidden_tokens=(0, 1, 2, 4, 5, 6))
    tokens, lengths, scores, truncated = map(keras.ops.convert_to_numpy, result)
    assert lengths.tolist() == [[1, 0, 0]]
    assert tokens[0, 0, 0] == END
    assert not tokens[0, 1:].any()
    assert not truncated.any()
    # Forbidden tokens keep their share: the end token's probability is still 1 / 7.
    np.testing.assert_allclose(scores[0, 0], math.log(1 / 7), atol=1e-5)
    assert (scores[0, 1:] < -1e20).all()


def test_search_uses_the_given_start_end_and_forbidden_tokens():
    """In this table, token 5 ends a target and token 6 starts one."""
    table = table_of({(): {3: 0.9, 5: 0.1}, (3,): {5: 0.8, 4: 0.2}})
    result = search_table(table, beam_size=2, start_token=6, end_token=5, forbidden_tokens=(0, 6))
    assert_same_results(results_of(result, 0), [Found((3, 5), math.log(0.72) / 2, False)])


def test_beam_larger_than_the_vocabulary_finds_every_target():
    result = search_table(table_of({}), beam_size=20, n_best=20, max_length=2)
    found = results_of(result, 0)
    # Words 4, 5 and 6: 4 targets end within two tokens, 9 are truncated there.
    assert len(found) == 13
    assert sum(hypothesis.truncated for hypothesis in found) == 9
    assert len({hypothesis.tokens for hypothesis in found}) == 13


def test_a_model_that_gives_nan_ends_the_search_without_a_result():
    result = search_table(np.full((1, STEPS, STATES, WORDS), np.nan), beam_size=2)
    assert results_of(result, 0) == []


@pytest.mark.parametrize(
    ("normalization", "share", "norm"), [("average", 0.1, 6), ("gnmt", 0.2, 11 / 6)]
)
def test_search_continues_while_a_live_hypothesis_could_still_win(normalization, share, norm):
    """A hypothesis of log 0.4 = -0.92 has ended; one of log 0.1 = -2.3 lives on at no cost.

    The live one loses at the next step (-2.3 / 2 = -1.15) and wins at the limit (-2.3 / 6 = -0.38);
    with 0.2 and gnmt, -1.38 and -0.88. The remaining probability is on a forbidden token.
    """
    table = table_of({(): {END: 0.4, 4: share, 0: 0.6 - share}}, otherwise={4: 1.0})
    table[0, STEPS - 1] = logits_of({END: 1.0})
    result = search_table(table, beam_size=2, length_normalization=normalization)
    best = Found((4,) * (STEPS - 1) + (END,), math.log(share) / norm, False)
    assert_same_results(results_of(result, 0), [best])


@pytest.mark.skipif(backend.name() != "tensorflow", reason="only there eager loops can be counted")
@pytest.mark.parametrize("normalization", ["average", "gnmt", "none"])
def test_search_stops_as_soon_as_no_live_hypothesis_can_win(normalization):
    sure = table_of({}, otherwise={END: 0.999, 4: 0.001})
    model = ChainModel(sure)
    result = beam_search(
        model, LINE, beam_size=3, length_normalization=normalization, max_length_extra=200
    )
    assert results_of(result, 0)[0].tokens == (END,)
    assert model.calls == 1


@pytest.mark.skipif(backend.name() != "tensorflow", reason="only there eager loops can be counted")
def test_search_stops_when_every_beam_slot_is_finished():
    # Under the mean, a live hypothesis could always win, so only a full beam ends this search.
    table = table_of({(): {4: 0.5, 5: 0.3, 6: 0.2}}, otherwise={END: 0.6, 4: 0.4})
    model = ChainModel(table)
    beam_search(model, LINE, beam_size=3, n_best=3, max_length_extra=200)
    assert 2 <= model.calls < 10


@pytest.mark.parametrize(
    ("beam_size", "patience", "ends"),
    # In floating point, 0.28 * 25 is slightly above 7.
    [(4, 0.5, 2), (10, 0.31, 4), (25, 0.28, 7)],
)
def test_patience_sets_how_many_hypotheses_end_before_search_stops(beam_size, patience, ends):
    """One hypothesis ends at each step, and each is better than the one before.

    A patience below 1 leaves beam slots for both continuations, so the last to end is the best.
    """
    table = table_of({}, otherwise={END: 0.1, 4: 0.9})
    result = search_table(
        table,
        beam_size=beam_size,
        patience=patience,
        max_length=20,
        max_length_extra=20,
        forbidden_tokens=(0, 1, 2, 5, 6),
    )
    score = (math.log(0.1) + (ends - 1) * math.log(0.9)) / ends
    assert_same_results(results_of(result, 0), [Found((4,) * (ends - 1) + (END,), score, False)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "`beam_size` must be an integer from 1 to 1,000, received 0"),
        ({"n_best": 0}, "`n_best` must be an integer from 1 to 100,000, received 0"),
        ({"beam_size": 2, "n_best": 3}, "`n_best` must be at most `beam_size`, 2, received 3"),
        ({"max_length": 0}, "`max_length` must be an integer from 1 to 10,000, received 0"),
        (
            {"max_length_extra": 0},
            "`max_length_extra` must be an integer from 1 to 10,000, received 0",
        ),
        (
            {"max_length_ratio": -1.0},
            "`max_length_ratio` must be a number from 0 to 1,000, received -1.0",
        ),
        ({"length_normalization": "mean"}, "one of average, gnmt, none, received 'mean'"),
        ({"alpha": -1.0}, "`alpha` must be a number from 0 to 10, received -1.0"),
    ],
)
def test_invalid_beam_search_arguments_raise_value_error(options, message):
    with pytest.raises(ValueError, match=message):
        beam_search(CHAIN, LINE, **options)
