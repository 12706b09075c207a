"""Learning rate schedules against their formulas."""

import json
import math

import keras
import numpy as np
import pytest

from keras_seq.schedules import (
    CosineCycles,
    InverseSquareRoot,
    cycle_ends,
    noam,
    warmup_cosine,
)
from keras_seq.settings import load_settings
from keras_seq.training.optimizer import make_optimizer

# Keras counts updates from 0, the formulas from 1.
STEPS = [0, 1, 2, 3, 9, 98, 99, 100, 999, 99_999]


@pytest.mark.parametrize("warmup", [1, 4, 100, 4000])
def test_inverse_square_root_rises_linearly_then_decays(warmup):
    schedule = InverseSquareRoot(0.004, warmup)
    for step in STEPS:
        number = step + 1
        rising = 0.004 * number / warmup
        falling = 0.004 * (warmup / number) ** 0.5
        expected = rising if number < warmup else falling
        np.testing.assert_allclose(float(schedule(step)), expected, rtol=1e-5)


def test_learning_rate_peaks_at_the_end_of_the_warmup():
    schedule = InverseSquareRoot(0.5, 10)
    rates = [float(schedule(step)) for step in range(100)]
    assert int(np.argmax(rates)) == 9
    np.testing.assert_allclose(max(rates), 0.5, rtol=1e-6)


def test_schedule_without_warmup_starts_at_the_peak():
    none, one = InverseSquareRoot(0.1, 0), InverseSquareRoot(0.1, 1)
    for step in STEPS:
        np.testing.assert_allclose(float(none(step)), 0.1 / (step + 1) ** 0.5, rtol=1e-5)
        assert float(none(step)) == float(one(step))


@pytest.mark.parametrize(("scale", "units", "warmup"), [(1.0, 512, 4000), (2.0, 128, 10)])
def test_noam_schedule_equals_the_formula_of_the_paper(scale, units, warmup):
    schedule = noam(scale, units, warmup)
    for step in STEPS:
        number = step + 1
        # "Attention Is All You Need", section 5.3, equation 3.
        expected = scale * units**-0.5 * min(number**-0.5, number * warmup**-1.5)
        np.testing.assert_allclose(float(schedule(step)), expected, rtol=1e-5)


@pytest.mark.parametrize(("warmup", "total"), [(0, 10), (1, 5), (100, 1000), (20, 20)])
def test_warmup_cosine_equals_its_formula(warmup, total):
    schedule = warmup_cosine(0.1, warmup, total)
    for number in [*range(1, warmup + 2), *range(warmup + 1, total + 1), total + 1, total + 9]:
        rising = 0.1 * number / (warmup + 1)
        passed = min((number - 1 - warmup) / max(1, total - warmup), 1.0)
        expected = rising if number <= warmup else 0.05 * (1 + np.cos(np.pi * passed))
        np.testing.assert_allclose(float(schedule(number - 1)), expected, atol=1e-7)
    again = keras.optimizers.schedules.deserialize(
        json.loads(json.dumps(keras.optimizers.schedules.serialize(schedule)))
    )
    assert float(again(3)) == float(schedule(3))


@pytest.mark.parametrize(
    ("warmup", "total", "ends"),
    [(0, 10, [3, 6, 10]), (5, 17, [9, 13, 17]), (2, 5, [3, 4, 5]), (100, 1100, [433, 766, 1100])],
)
def test_rate_with_three_cycles_falls_to_0_three_times(warmup, total, ends):
    """Compares with the formula of the paper, in plain Python; updates count from 1."""
    assert cycle_ends(warmup, total, 3) == ends
    schedule = warmup_cosine(0.1, warmup, total, cycles=3)
    expected = [0.1 * number / (warmup + 1) for number in range(1, warmup + 1)]
    for start, end in zip([warmup, *ends], ends, strict=False):
        length = end - start
        expected += [0.05 * (math.cos(math.pi * passed / length) + 1) for passed in range(length)]
    assert len(expected) == total
    found = keras.ops.convert_to_numpy(schedule(np.arange(total + 5)))
    np.testing.assert_allclose(found, [*expected, *[0.0] * 5], atol=1e-7)
    again = keras.optimizers.schedules.deserialize(
        json.loads(json.dumps(keras.optimizers.schedules.serialize(schedule)))
    )
    assert isinstance(again, CosineCycles) and again.get_config() == schedule.get_config()


def test_cycles_of_the_settings_reach_the_optimizer():
    values = {"schedule": "cosine", "cycles": 2, "warmup_steps": 2, "learning_rate": 0.5}
    settings = load_settings(overrides={f"training.{key}": each for key, each in values.items()})
    rate = make_optimizer(settings, 10)._learning_rate
    # Two cycles of four updates.
    cycle = [0.25 * (1 + math.cos(math.pi * passed / 4)) for passed in range(4)]
    found = [float(rate(step)) for step in range(10)]
    np.testing.assert_allclose(found, [0.5 / 3, 1 / 3, *cycle, *cycle], rtol=1e-5)


@pytest.mark.parametrize("cycles", [0, 6])
def test_more_cycles_than_updates_are_refused(cycles):
    with pytest.raises(ValueError, match=f"from 1 to the 5 updates .* received {cycles}"):
        cycle_ends(5, 10, cycles)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 0, [1]), "`peak` must be positive"),
        ((0.1, 3, [3, 4]), "`ends` must ascend"),
        ((0.1, 0, [2, 2]), "`ends` must ascend"),
        ((0.1, 0, []), "`ends` must ascend"),
        ((0.1, -1, [2]), "`ends` must ascend"),
    ],
)
def test_invalid_cycles_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        CosineCycles(*arguments)


def test_schedule_sets_the_learning_rate_of_an_optimizer():
    """With plain SGD and a gradient of 1, the weight decreases by the rate of each update."""
    schedule = InverseSquareRoot(0.1, 2)
    optimizer = keras.optimizers.SGD(schedule)
    weight = keras.Variable(1.0)
    optimizer.build([weight])
    values = [1.0]
    for _ in range(4):
        optimizer.apply([keras.ops.ones(())])
        values.append(float(weight.value))
    rates = [0.05, 0.1, 0.1 * (2 / 3) ** 0.5, 0.1 * 0.5**0.5]
    np.testing.assert_allclose(-np.diff(values), rates, rtol=1e-4)


def test_inverse_square_root_round_trips_through_its_config():
    schedule = InverseSquareRoot(0.1, 7)
    serialized = keras.optimizers.schedules.serialize(schedule)
    again = keras.optimizers.schedules.deserialize(json.loads(json.dumps(serialized)))
    assert isinstance(again, InverseSquareRoot)
    assert again.get_config() == {"peak": 0.1, "warmup_steps": 7}


@pytest.mark.parametrize("peak", [0, -1.0, float("nan")])
def test_inverse_square_root_rejects_an_invalid_peak(peak):
    with pytest.raises(ValueError, match=rf"`peak` must be positive, received {peak}"):
        InverseSquareRoot(peak, 10)


def test_inverse_square_root_rejects_negative_warmup_steps():
    with pytest.raises(ValueError, match="`warmup_steps` must be 0 or more, received -1"):
        InverseSquareRoot(0.1, -1)
