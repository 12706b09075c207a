"""`Validation` in a user's own `fit`."""

import json

import keras
import numpy as np
import pytest

from keras_seq.callbacks import StopAtLimit, Validation

pytestmark = pytest.mark.jax

X, Y = np.ones((8, 2), "float32"), np.ones((8, 1), "float32")


def fit(*callbacks, epochs=3):
    """Trains with 4 updates per epoch and returns the number of updates."""
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, Y, batch_size=2, epochs=epochs, verbose=0, callbacks=list(callbacks))
    return int(model.optimizer.iterations)


class Judge:
    """Returns scores from a list, and records the evaluated steps and the best results."""

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
    # The best score is at step 2; a patience of 2 ends after the worse scores at 3 and 4.
    assert fit(validation(judge, 1, patience=2)) == 4
    assert judge.asked == [1, 2, 3, 4]
    judge = Judge(1, 3, 2, 2.5, 4, 1, 4, 3.9, 0, 0)
    # A patience of 3 lasts until the better score at 5, then ends after 6, 7 and 8.
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


class Run:
    """Runs a `Validation`, configured as in training, over given scores and losses."""

    def __init__(self, scores, losses, patience=0, tie_breaks=None, **options):
        self.results = [
            {"score": score, "loss": loss, "error": error}
            for score, loss, error in zip(scores, losses, tie_breaks or losses, strict=True)
        ]
        self.options = {
            "every": 1,
            "monitor": "score",
            "patience": patience,
            "loss": "loss",
            "is_worst": lambda value: round(value, 2) <= 0,
        } | options
        self.best = []

    def fit(self, first=0, state=None):
        """Runs all updates after `first`; returns the last step and the callback."""
        callback = Validation(
            lambda step: self.results[step - 1],
            initial_step=first,
            on_best=lambda step, results: self.best.append(step),
            **self.options,
        )
        callback.restore(state or {})
        # Make the same callback calls as `fit`, without training.
        model = keras.Sequential()
        callback.set_model(model)
        callback.on_train_begin()
        callback.on_epoch_begin(0)
        model.stop_training = False
        for batch in range(len(self.results) - first):
            callback.on_train_batch_end(batch)
            if model.stop_training:
                break
        callback.on_train_end()
        return callback.step, callback


def test_training_continues_while_the_loss_falls_and_the_score_is_at_zero():
    """For single-word targets BLEU is always 0, even if the last checkpoint is perfect."""
    losses = [3.0, 2.0, 1.5, 1.0, 0.7, 0.4, 0.2, 0.1]
    run = Run([0.0] * 8, losses, patience=3)
    steps, callback = run.fit()
    assert steps == 8
    # The best step is not the first, which has the same score but a higher loss.
    assert (callback.best, callback.best_step) == (0.0, 8)


def test_patience_counts_evaluations_without_a_lower_loss_while_the_score_is_flat():
    run = Run([0.0] * 9, [3, 2, 2.5, 2.1, 1.9, 2.0, 2.0, 1.95, 1.0], patience=3)
    steps, callback = run.fit()
    assert steps == 8
    assert (callback.best_step, callback.wait) == (5, 3)
    assert run.best == [1, 2, 5]


def test_score_decides_as_soon_as_it_moves():
    # From step 4 on only the score counts, even where the loss is lower.
    run = Run([0.0, 0.0, 0.001, 5.0, 4.0, 6.0, 6.0, 3.0], [4, 3, 2, 9, 1, 8, 8, 0.1], patience=2)
    steps, callback = run.fit()
    assert (steps, callback.best_step, callback.best) == (8, 6, 6.0)
    assert run.best == [1, 2, 3, 4, 6]


def test_score_that_stays_at_its_first_value_is_flat():
    """A model with constant output has a constant error rate, which may be below 100 %."""
    run = Run([83.5] * 6, [5, 4, 3, 2, 1, 0.5], patience=2, mode="min", is_worst=None)
    steps, callback = run.fit()
    assert (steps, callback.best_step) == (6, 6)


def test_error_rates_above_100_percent_are_flat():
    rates = [140.0, 250.0, 100.0, 99.0, 99.5]
    run = Run(rates, [5, 4, 3, 2, 1], patience=1, mode="min", is_worst=lambda value: value >= 100)
    steps, callback = run.fit()
    assert (steps, callback.best_step, callback.best) == (5, 4, 99.0)


def test_equal_scores_are_compared_by_error_rate_and_then_by_loss():
    scores = [10, 50.0, 50.0, 50.0, 50.0, 50.0]
    errors = [90, 20.0, 15.0, 15.0, 15.0, 30.0]
    losses = [9, 1.00, 2.00, 3.00, 1.50, 0.1]
    run = Run(scores, losses, tie_breaks=errors, tie_break="error", patience=3)
    steps, callback = run.fit()
    assert run.best == [1, 2, 3, 5]
    # A lower error rate resets patience; a lower loss at the same error rate does not.
    assert (steps, callback.best_step, callback.wait) == (6, 5, 3)


@pytest.mark.parametrize("nan", ["score", "loss", "error"])
def test_nan_values_are_never_better(nan):
    columns = {"score": [0.0, 0, 0], "loss": [3, 2, 2.5], "error": [1, 1, 1]}
    columns[nan] = [columns[nan][0], float("nan"), columns[nan][2]]
    run = Run(columns["score"], columns["loss"], tie_breaks=columns["error"], tie_break="error")
    _, callback = run.fit()
    assert callback.best_step == (2 if nan == "error" else 3)


def test_resumed_validation_decides_as_an_uninterrupted_one():
    generator = np.random.default_rng(5)
    for _ in range(10):
        scores = np.concatenate([np.zeros(3), generator.integers(0, 4, 9)])
        errors, losses = generator.integers(0, 3, 12), generator.integers(0, 5, 12)
        run = Run(
            [*map(float, scores)],
            [*map(float, losses)],
            tie_breaks=[*map(float, errors)],
            tie_break="error",
            patience=5,
        )
        steps, expected = run.fit()
        best, run.best = run.best, []
        # Stop after each update and pass the state through JSON.
        state = {}
        for step in range(steps):
            results, run.results = run.results, run.results[: step + 1]
            _, callback = run.fit(step, json.loads(json.dumps(state, allow_nan=False)))
            state, run.results = callback.state, results
        assert state == expected.state
        assert run.best == best


def test_state_of_another_monitor_is_not_used():
    """A best BLEU of 20 cannot be compared with an exact match of 13 %."""
    run = Run([13.0, 14.0], [1.0, 1.0])
    state = {"monitor": "bleu", "best": 20.0, "best_step": 7, "without_better": 3}
    _, callback = run.fit(state=state)
    assert (callback.best, callback.best_step, callback.wait) == (14.0, 2, 0)


def test_state_without_a_loss_is_restored():
    """Version 1 of the run format stores no loss."""
    state = {"best": 20.0, "best_step": 0, "without_better": 3, "validated": 0}
    _, callback = Run([19.0, 20.5], [1.0, 1.0]).fit(state=state)
    assert (callback.best, callback.best_step) == (20.5, 2)
