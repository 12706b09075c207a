"""Sums over alignments against an enumeration of all alignments."""

import itertools

import numpy as np
import pytest
from keras import ops

from keras_seq.layers import HardMonotonicAttention

pytestmark = [pytest.mark.jax, pytest.mark.torch]

ROWS, TARGET_STEPS, SOURCE_STEPS, VOCABULARY = 2, 4, 3, 7
LENGTHS = (3, 2)
MASK = np.arange(SOURCE_STEPS) < np.array(LENGTHS)[:, None]
generator = np.random.default_rng(0)
STATES = generator.normal(size=(ROWS, TARGET_STEPS, 5)).astype("float32")
VALUE = generator.normal(size=(ROWS, SOURCE_STEPS, 6)).astype("float32")
# The start token and four tokens; the layer reads all but the last.
TARGET = generator.integers(0, VOCABULARY, (ROWS, TARGET_STEPS + 1)).astype("int32")


def log_softmax(x):
    return x - np.log(np.exp(x).sum())


def emission(weights, row, step, position):
    """Log-probabilities of all tokens."""
    hidden = np.tanh(
        STATES[row, step] @ weights["state_kernel"]
        + VALUE[row, position] @ weights["value_kernel"]
        + weights["bias"]
    )
    return log_softmax(hidden @ weights["output_kernel"] + weights["output_bias"])


def move(weights, window, row, step, before, after):
    """Probability of a move between two positions of the source."""
    length = LENGTHS[row]
    if window:
        scores = (
            STATES[row, step] @ weights["state_move_kernel"]
            + VALUE[row, before] @ weights["value_move_kernel"]
            + weights["move_bias"]
        )[: min(window, length - 1 - before) + 1]
    else:
        keys = VALUE[row, before:length] @ weights["score_kernel"]
        scores = keys @ STATES[row, step]
    distance = after - before
    return np.exp(log_softmax(scores))[distance] if 0 <= distance < len(scores) else 0.0


def likelihood(weights, window, row, steps):
    """P(y_1 .. y_steps), summed over all alignments."""
    total = 0.0
    for alignment in itertools.product(range(LENGTHS[row]), repeat=steps):
        probability, before = 1.0, 0
        for step, position in enumerate(alignment):
            token = TARGET[row, step + 1]
            probability *= move(weights, window, row, step, before, position)
            probability *= np.exp(emission(weights, row, step, position)[token])
            before = position
        total += probability
    return total


@pytest.mark.parametrize("window", [0, 1, 2])
def test_hard_attention_equals_the_sum_over_all_alignments(window):
    layer = HardMonotonicAttention(VOCABULARY, units=4, window=window)
    got, prior = layer(STATES, VALUE, TARGET[:, :-1], MASK, return_weights=True)
    got, prior = np.exp(ops.convert_to_numpy(got)), ops.convert_to_numpy(prior)
    weights = {weight.name: ops.convert_to_numpy(weight) for weight in layer.weights}
    np.testing.assert_allclose(got.sum(axis=-1), 1, atol=1e-5)
    np.testing.assert_allclose(prior.sum(axis=-1), 1, atol=1e-5)
    assert not prior[1, :, 2].any()
    for row, step in itertools.product(range(ROWS), range(TARGET_STEPS)):
        expected = likelihood(weights, window, row, step + 1) / likelihood(
            weights, window, row, step
        )
        assert got[row, step, TARGET[row, step + 1]] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("window", [0, 2])
def test_hard_attention_in_single_steps_equals_the_whole_target(window):
    layer = HardMonotonicAttention(VOCABULARY, units=4, window=window)
    whole = ops.convert_to_numpy(layer(STATES, VALUE, TARGET[:, :-1], MASK))
    source, state = layer.project(VALUE), layer.initial_state(VALUE, beam_size=2)
    for step in range(TARGET_STEPS):
        # The second hypothesis is the other row's; only the first is compared.
        states, tokens = (
            np.stack([array[:, step], array[::-1, step]], axis=1) for array in (STATES, TARGET)
        )
        outputs, state, _ = layer.step(states, tokens, state, **source, value_mask=MASK)
        np.testing.assert_allclose(
            ops.convert_to_numpy(outputs)[:, 0], whole[:, step], rtol=0, atol=1e-5
        )
