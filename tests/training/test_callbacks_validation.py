"""`Validation` in a user's own `fit`."""

import keras
import numpy as np
import pytest

from keras_seq.training.callbacks import StopAtLimit, Validation

pytestmark = pytest.mark.jax

X, Y = np.ones((8, 2), "float32"), np.ones((8, 1), "float32")


def fit(*callbacks, epochs=3):
    """Four updates an epoch; returns the number of updates made."""
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, Y, batch_size=2, epochs=epochs, verbose=0, callbacks=list(callbacks))
    return int(model.optimizer.iterations)


class Judge:
    """Gives values from a list, and notes when it was asked and what was the best."""

    def __init__(self, *values):
        self.values = iter(values)
        self.asked = []
        self.best = []

    def __call__(self, step):
        self.asked.append(step)
        return {"score": next(self.values), "other": -step}

    def on_best(self, step, results):
        self.best.append((step, results["score"], results["other"]))


def validation(judge, every, **arguments):
    return Validation(judge, every=every, monitor="score", on_best=judge.on_best, **arguments)


def test_validation_evaluates_every_n_updates_and_at_the_end():
    judge = Judge(1, 2, 3)
    assert fit(validation(judge, 5)) == 12
    assert judge.asked == [5, 10, 12]


def test_validation_evaluates_only_once_at_the_end():
    judge = Judge(1, 2, 3)
    fit(validation(judge, 4))
    assert judge.asked == [4, 8, 12]


def test_validation_evaluates_when_another_callback_stops_training():
    judge = Judge(1, 2)
    fit(StopAtLimit(max_steps=6), validation(judge, 4))
    assert judge.asked == [4, 6]


def test_validation_calls_on_best_for_each_new_best_value():
    judge = Judge(0.5, 0.4, 0.5, 0.7, 0.6, 0.7)
    callback = validation(judge, 2)
    fit(callback)
    # An equal value is not better.
    assert judge.best == [(2, 0.5, -2), (8, 0.7, -8)]
    assert (callback.best, callback.best_step) == (0.7, 8)


def test_patience_counts_evaluations_without_a_better_one():
    judge = Judge(1, 3, 2, 2.5, 4, 1, 4, 5)
    # Best at 2; two worse at 3 and 4, the second of which stops a patience of 2.
    assert fit(validation(judge, 1, patience=2)) == 4
    assert judge.asked == [1, 2, 3, 4]
    judge = Judge(1, 3, 2, 2.5, 4, 1, 4, 3.9, 0, 0)
    # With 3 it lasts until the better one at 5, and stops after 6, 7 and 8.
    assert fit(validation(judge, 1, patience=3)) == 8
    assert judge.best == [(1, 1, -1), (2, 3, -2), (5, 4, -5)]


def test_a_patience_of_0_never_stops():
    judge = Judge(*range(12, 0, -1))
    assert fit(validation(judge, 1, patience=0)) == 12


def test_validation_best_value_may_be_negative():
    judge = Judge(-5, -3, -4)
    callback = validation(judge, 4)
    fit(callback)
    assert callback.best == -3


def test_nan_value_is_never_the_best():
    nan = float("nan")
    judge = Judge(nan, 1, nan, 2)
    callback = validation(judge, 3)
    fit(callback)
    assert callback.best == 2
    assert [step for step, *_ in judge.best] == [6, 12]


def test_nan_values_use_up_patience():
    nan = float("nan")
    assert fit(validation(Judge(*[nan] * 12), 1, patience=3)) == 3


def test_validation_evaluates_the_current_weights_of_the_model():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    losses = []

    def evaluate(step):
        losses.append(float(((model(X) - Y) ** 2)[0, 0]))
        return {"score": -losses[-1]}

    model.fit(X, Y, batch_size=2, verbose=0, callbacks=[Validation(evaluate, 1, "score")])
    assert len(losses) == 4
    assert losses == sorted(losses, reverse=True)
    assert len(set(losses)) == 4


def test_validation_counts_updates_from_initial_step():
    judge = Judge(1, 2, 3)
    fit(validation(judge, 5, initial_step=12))
    assert judge.asked == [15, 20, 24]


@pytest.mark.parametrize("every", [0, -2, 1.5, None])
def test_validation_rejects_an_interval_that_is_not_a_positive_integer(every):
    with pytest.raises(ValueError, match=rf"`every` must be a positive integer, received {every}"):
        Validation(print, every=every, monitor="score")


def test_validation_rejects_a_negative_patience():
    with pytest.raises(ValueError, match="`patience` must be 0 or more, received -1"):
        Validation(print, every=1, monitor="score", patience=-1)
