"""The deep information bottleneck on two views with known mutual information."""

import importlib.util
import itertools
import math
from pathlib import Path

import keras
import pytest

PATH = Path(__file__).parents[2] / "examples" / "information_bottleneck.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("information_bottleneck", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_known_information_equals_the_sum_over_the_joint_table(example):
    """Sums over the hidden letter, the seen letter and Y; the other two are uninformative."""
    letters, error = example.LETTERS, example.ERROR

    def channel(one, other):
        return 1 - error if one == other else error / (letters - 1)

    information = 0.0
    for seen, y in itertools.product(range(letters), repeat=2):
        joint = sum(channel(h, seen) * channel(h, y) / letters for h in range(letters))
        information += joint * math.log(joint * letters**2)
    assert example.known_information() == pytest.approx(information, rel=1e-9)


@pytest.mark.docs
@pytest.mark.weekly
def test_larger_beta_lowers_the_rate_within_the_known_information(example):
    keras.utils.set_random_seed(1)
    train, test, known = example.views(8000, 1), example.views(4000, 2), example.known_information()
    model, encoder, read, sampling = example.bottleneck()
    model.compile(
        keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    curve = []
    for beta in (0.02, 0.2, 1.2):
        sampling.kl_weight.assign(beta)
        model.fit(*train, batch_size=500, epochs=12, verbose=0)
        curve.append(example.measured(encoder, read, sampling, *test))
    rates, relevances = zip(*curve, strict=True)
    assert rates[0] > rates[1] + 0.5 > rates[2] + 1.0
    # The mean of 4,000 losses has a random error of about 0.02.
    assert max(relevances) < known + 0.06
    assert relevances[0] > 0.8 * known
    # The rate is an upper bound on the relevance.
    assert all(relevance < rate + 0.06 for rate, relevance in curve)
    assert rates[2] < 0.3
