"""Scheduled sampling rates against the formulas of the paper in plain Python."""

import math

import pytest

from keras_seq.schedules.rates import scheduled_sampling_rate

pytestmark = pytest.mark.jax

STEPS = [0, 1, 7, 100, 5000]


def at(rate, step):
    return float(rate(step))


def test_constant_and_linear_rates_equal_their_formulas():
    constant = scheduled_sampling_rate("constant", 0.3, 100)
    linear = scheduled_sampling_rate("linear", 0.5, 100)
    for step in STEPS:
        assert at(constant, step) == pytest.approx(0.3)
        # The paper's max(e, k - c i) with k = 1, c = 1 / 200, e = 0.
        assert at(linear, step) == pytest.approx(0.5 * (1 - max(0, 1 - step / 200)), abs=1e-6)


def test_exponential_rate_equals_its_formula():
    rate = scheduled_sampling_rate("exponential", 0.5, 100)
    k = 0.5 ** (1 / 100)
    for step in STEPS:
        assert at(rate, step) == pytest.approx(0.5 * (1 - k**step), abs=1e-6)
    assert at(rate, 100) == pytest.approx(0.25)


@pytest.mark.parametrize("half_steps", [1, 100, 20_000])
def test_inverse_sigmoid_rate_equals_its_formula(half_steps):
    rate = scheduled_sampling_rate("inverse_sigmoid", 1.0, half_steps)
    low, high = 1.0, half_steps + 2.0
    for _ in range(100):
        k = (low + high) / 2
        low, high = (k, high) if k * math.log(k) < half_steps else (low, k)
    for step in STEPS:
        if step / k < 700:
            expected = 1 - k / (k + math.exp(step / k))
            assert at(rate, step) == pytest.approx(expected, abs=1e-5)
    assert at(rate, half_steps) == pytest.approx(0.5, abs=1e-5)
    # A step at which exp overflows.
    assert at(rate, 10**9) == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cubic", 0.5, 1), "`kind` must be one of constant"),
        (("linear", 1.5, 1), "`rate` must be from 0 to 1"),
        (("linear", 0.5, 0), "`half_steps` must be positive"),
    ],
)
def test_scheduled_sampling_rate_rejects_invalid_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        scheduled_sampling_rate(*arguments)
