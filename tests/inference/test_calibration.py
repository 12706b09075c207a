"""Temperatures against scipy's minimum, and calibration errors against a plain loop."""

import numpy as np
import pytest
from label_runs import labeled_lines
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

import keras_seq
from keras_seq.evaluation.label_values import calibration_value
from keras_seq.inference.calibration import fit_temperature, with_temperature

GENERATOR = np.random.default_rng(2)


@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
def test_temperature_is_the_minimum_of_the_loss(factor):
    logits = GENERATOR.normal(0, 2, (300, 4))
    labels = np.array([GENERATOR.choice(4, p=np.exp(row)) for row in log_softmax(logits, axis=1)])
    log_probabilities = log_softmax(factor * logits, axis=1)

    def loss(log_temperature):
        scaled = log_softmax(log_probabilities / np.exp(log_temperature), axis=1)
        return -scaled[np.arange(300), labels].sum()

    expected = np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x)
    assert fit_temperature(log_probabilities, labels) == pytest.approx(expected, rel=1e-3)


def test_temperature_of_extreme_predictions_has_bounds():
    right, wrong = np.log([[0.9, 0.1]]), np.log([[0.1, 0.9]])
    assert fit_temperature(right, np.array([0])) == pytest.approx(np.exp(-3), rel=1e-3)
    assert fit_temperature(wrong, np.array([0])) == pytest.approx(np.exp(3), rel=1e-3)
    assert fit_temperature(right[:0], []) == fit_temperature(right, [-1]) == 1.0
    assert with_temperature(np.array([[0.0, -1e9]]), 0.05).tolist() == [[1.0, 0.0]]


def test_calibration_error_is_the_weighted_gap_of_each_bin():
    shares = GENERATOR.uniform(0, 1, 500)
    correct = GENERATOR.random(500) < shares**2
    expected = 0.0
    for number in range(15):
        inside = [number / 15 <= share < (number + 1) / 15 for share in shares]
        if any(inside):
            gap = abs(correct[inside].mean() - shares[inside].mean())
            expected += gap * sum(inside) / 500
    value = calibration_value(shares.tolist(), correct.tolist(), samples=50)
    assert value.value == pytest.approx(expected, abs=1e-9)
    assert value.mean == pytest.approx(expected, abs=0.05) and 0 < value.interval < 0.1
    assert calibration_value([1.0], [True]).value == 0.0


def test_trained_classifier_has_the_temperature_of_its_validation_text(classifier_run):
    classifier = keras_seq.Classifier.load(classifier_run)
    texts, labels = zip(*labeled_lines(30, seed=2), strict=True)  # the validation text
    log_probabilities, _ = classifier.log_probabilities(texts)
    names = sorted(set(labels))
    numbers = np.array([names.index(label) for label in labels])
    temperature = fit_temperature(log_probabilities, numbers)
    expected = with_temperature(log_probabilities, temperature).max(axis=1)
    found = [result.probability for result in classifier.classify(texts)]
    np.testing.assert_allclose(found, expected, atol=2e-4)
    assert temperature != 1.0
