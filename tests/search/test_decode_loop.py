"""Removing finished rows from a search every few steps does not change the results."""

import keras
import numpy as np
import pytest
import reference_transformer
from chain_model import ChainModel, chain_of
from differentiation import quick
from keras import ops
from plain_search import END, assert_same_results, plain_beam_search, results_of
from weekly import weekly, weekly_but

from keras_seq import backend
from keras_seq.models import Ensemble, Transformer
from keras_seq.search import beam_search, sample
from keras_seq.search import decode_loop as search_steps
from keras_seq.search.decode_loop import ROUND

pytestmark = [pytest.mark.jax, pytest.mark.torch]

ROWS, STEPS, STATES, VOCABULARY = 5, 3 * ROUND - 3, 7, 9
LIMITS = {"max_length": STEPS, "max_length_ratio": 0.0, "max_length_extra": STEPS}
# Row n reads table n, and each row has a different length.
SOURCES = np.array([[4 + n, *[9] * n, *[0] * (ROWS - n)] for n in range(ROWS)], "int32")
PREFIXES = np.array([[4, 5, 6, 0][:n] + [0] * (4 - n) for n in (0, 1, 2, 3, 2)], "int32")


def make_tables():
    """Tables in which later rows end less often."""
    tables = np.random.default_rng(5).normal(size=(ROWS, STEPS, STATES, VOCABULARY))
    tables[..., END] += np.linspace(2, -4, ROWS)[:, None, None]
    return tables.astype("float32")


SEARCHES = {
    "beam": (beam_search, {"beam_size": 3, "n_best": 2}),
    "greedy": (beam_search, {}),
    "coverage": (beam_search, {"beam_size": 3, "coverage_penalty": 0.3}),
    "rules": (
        beam_search,
        {"beam_size": 3, "no_repeat_ngram_size": 3, "min_length_ratio": 2.0, "patience": 1.7}
        | LIMITS
        | {"max_length_ratio": 4.0},
    ),
    "sampling": (sample, {"n_best": 4, "temperature": 1.3, "seed": 8}),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "prefixed"),
    [
        *weekly(*((name, False) for name in SEARCHES if name != "rules"), ("sampling", True)),
        *(("rules", False), ("beam", True)),
    ],
)
def test_rows_leaving_a_batch_early_get_the_same_results_as_alone(name, prefixed):
    function, options = SEARCHES[name]
    model = ChainModel(make_tables())

    def find(source, prefix=None):
        return function(model, source, prefix=prefix, **(LIMITS | options))

    given = (SOURCES, PREFIXES) if prefixed else (SOURCES,)
    together = backend.compiled(find, model.variables, ranks=[2] * len(given))(*given)
    lengths = ops.convert_to_numpy(together.lengths).max(axis=1)
    assert len(set(lengths // ROUND)) >= 2, "rows are to leave in different rounds"
    assert tuple(together.tokens.shape) == (ROWS, together.lengths.shape[1], STEPS)
    find_alone = quick(find)
    for row in (0, 2, ROWS - 1):
        # Shapes are static here, so no cache grows and no row is removed.
        alone = find_alone(*(ops.array(part[row : row + 1]) for part in given))
        assert_same_results(results_of(together, row), results_of(alone, 0), tolerance=1e-5)


def test_long_beam_search_equals_plain_python_search():
    tables = make_tables()
    model = ChainModel(tables)
    found = backend.compiled(
        lambda source: beam_search(model, source, beam_size=3, n_best=3, **LIMITS),
        model.variables,
        ranks=[2],
    )(SOURCES)
    for row in range(ROWS):
        expected = plain_beam_search(chain_of(tables[row]), 3, 3, STEPS, "average", 1.0)
        assert_same_results(results_of(found, row), expected)


TALKERS_SOURCES = np.array([[5, 8, 4, 3], [7, 3, 0, 0], [8, 8, 3, 0]], "int32")


def talker(seed):
    """A Transformer whose predictions depend on all earlier tokens."""
    model = Transformer(VOCABULARY, VOCABULARY, 1, 2, units=8, feedforward_units=8, num_heads=2)
    reference_transformer.randomize(model, seed=seed)
    for weight in model.weights:
        weight.assign(weight * (4 if "kernel" in weight.path else 1))
    return model


@pytest.mark.slow
@pytest.mark.skipif(backend.name() != "tensorflow", reason="elsewhere shapes are static")
@pytest.mark.parametrize("ensemble", weekly_but([False, True], False))
def test_search_with_moving_caches_equals_search_with_static_caches(ensemble):
    model = Ensemble([talker(0), talker(1)]) if ensemble else talker(0)
    source = TALKERS_SOURCES

    def find(source):
        options = LIMITS | {"beam_size": 4, "n_best": 4, "min_length": STEPS - 4}
        return beam_search(model, source, **options)

    moved = backend.compiled(find, model.variables, ranks=[2])(source)
    # Shapes are static here: caches have room for all steps from the start.
    stayed = find(ops.array(source))
    for row in range(len(source)):
        assert_same_results(results_of(moved, row), results_of(stayed, row), tolerance=1e-4)
    assert ops.convert_to_numpy(moved.lengths).min() > 2 * ROUND


def found_and_places(model, source, function, options):
    """Results of a search with static shapes, and each cache length that it requests."""
    lengths = []

    class Noting:
        encoder, decoder_step, decoder_step_with_attention = (
            model.encoder, model.decoder_step, model.decoder_step_with_attention
        )  # fmt: skip

        def initial_state(self, memory, beam_size, length):
            lengths.append(length)
            return model.initial_state(memory, beam_size, length)

        def grow_state(self, state, length):
            lengths.append(length)
            return model.grow_state(state, length)

    find = quick(lambda source: function(Noting(), source, **(LIMITS | options)))
    return find(ops.array(source)), lengths


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "options"),
    [
        pytest.param(sample, {"n_best": 3, "seed": 2}, marks=pytest.mark.weekly),
        (beam_search, {"beam_size": 4, "n_best": 4, "coverage_penalty": 0.3, "record": True}),
    ],
)
def test_growing_the_state_of_a_static_search_does_not_change_results(
    function, options, monkeypatch
):
    model = talker(0)
    whole, (length,) = found_and_places(model, TALKERS_SOURCES, function, options)
    assert length == STEPS
    monkeypatch.setattr(search_steps, "_FIRST_STAGE", 2)
    grown, lengths = found_and_places(model, TALKERS_SOURCES, function, options)
    assert lengths == [2, 6, STEPS - 8]
    parts = [keras.tree.flatten(found) for found in (grown, whole)]
    for one, other in zip(*parts, strict=True):
        one, other = ops.convert_to_numpy(one), ops.convert_to_numpy(other)
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    found = grown[0] if "record" in options else grown
    assert ops.convert_to_numpy(found.lengths).max() > 8, "it is to end in the last stage"


@pytest.mark.parametrize(
    ("limit", "stages"),
    [(1, [1]), (128, [128]), (129, [64, 129]), (512, [64, 512]), (513, [64, 256, 513])],
)
def test_search_stages_are_few_and_more_than_double_in_size(limit, stages):
    assert search_steps._stages(limit) == stages


@pytest.mark.skipif(backend.name() != "tensorflow", reason="elsewhere shapes are static")
def test_search_record_keeps_every_step_of_rows_that_left():
    model = ChainModel(make_tables())

    def find(source):
        return beam_search(model, source, beam_size=3, record=True, **LIMITS)

    (found, record), (same, alone) = (
        backend.compiled(find, model.variables, ranks=[2])(SOURCES),
        find(ops.array(SOURCES)),
    )
    steps = ops.convert_to_numpy(record.steps)
    assert len(set(steps // ROUND)) >= 2
    assert record.tokens.shape == (ROWS, STEPS, 3)
    for ours, theirs in zip((*record, *found), (*alone, *same), strict=True):
        np.testing.assert_allclose(
            ops.convert_to_numpy(ours), ops.convert_to_numpy(theirs), rtol=1e-5, atol=1e-5
        )


class Counting(ChainModel):
    """A `ChainModel` that counts the rows for which it computes a step."""

    def __init__(self, tables):
        super().__init__(tables)
        self.asked = keras.Variable(0, dtype="int32", trainable=False)

    def decoder_step(self, inputs, training=None):
        self.asked.assign_add(ops.shape(inputs["token"])[0])
        return super().decoder_step(inputs)


@pytest.mark.skipif(backend.name() != "tensorflow", reason="elsewhere shapes are static")
@pytest.mark.parametrize(("function", "options"), [(beam_search, {"beam_size": 1}), (sample, {})])
def test_finished_rows_cost_no_steps_from_the_next_round_on(function, options):
    tables = make_tables()
    model = Counting(tables)
    found = backend.compiled(
        lambda source: function(model, source, **options, **LIMITS), model.variables, ranks=[2]
    )(SOURCES)
    # With one hypothesis per row, a row is done when its hypothesis ends.
    steps = ops.convert_to_numpy(found.lengths)[:, 0]
    rounds = np.minimum(-(-steps // ROUND) * ROUND, steps.max())
    assert len(set(rounds)) >= 2
    assert int(model.asked) == rounds.sum()
