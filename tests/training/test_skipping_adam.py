"""`SkippingAdam` against Adam, and `NanGuard` beside it in a user's own `fit`."""

import keras
import numpy as np
import pytest

from keras_seq.training import InverseSquareRoot, SkippingAdam
from keras_seq.training.callbacks import NanGuard

OPTIONS = {"use_ema": True, "ema_momentum": 0.5, "global_clipnorm": 1.0}
generator = np.random.default_rng(0)
X = generator.normal(size=(12, 3)).astype("float32")
Y = generator.normal(size=(12, 1)).astype("float32")


def fit(optimizer, x, y, *callbacks):
    """Updates of two rows each, in order; the model."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    model.fit(x, y, batch_size=2, shuffle=False, verbose=0, callbacks=list(callbacks))
    return model


def bad(rows):
    x = X.copy()
    x[rows] = np.nan
    return x


@pytest.mark.parametrize("bad_rows", [[], [4], [0, 5, 11]])
def test_is_adam_on_the_batches_whose_gradients_are_finite(bad_rows):
    skipping = SkippingAdam(InverseSquareRoot(0.1, 3), **OPTIONS)
    model = fit(skipping, bad(bad_rows), Y)
    left_out = {row // 2 for row in bad_rows}
    good = [row for row in range(12) if row // 2 not in left_out]
    adam = keras.optimizers.Adam(InverseSquareRoot(0.1, 3), **OPTIONS)
    expected = fit(adam, X[good], Y[good])
    for weight, other in zip(model.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, other)
    # Moments, averages and the count of updates; those of the skipped come after them.
    for variable, other in zip(skipping.variables, adam.variables, strict=False):
        np.testing.assert_array_equal(variable.numpy(), other.numpy(), err_msg=variable.path)
    assert int(skipping.skipped) == len(left_out)
    assert int(skipping.skipped_in_row) == (1 if 11 in bad_rows else 0)


def test_gradients_whose_norm_overflows_are_skipped():
    optimizer = SkippingAdam(0.1)
    weight = keras.Variable([1.0, 1.0])
    optimizer.build([weight])
    optimizer.apply([keras.ops.convert_to_tensor([3e19, 0.0])])
    assert (weight.numpy().tolist(), int(optimizer.skipped)) == ([1.0, 1.0], 1)
    optimizer.apply([keras.ops.convert_to_tensor([3.0, 0.0])])
    assert weight.numpy()[0] == pytest.approx(0.9)
    assert (int(optimizer.skipped), int(optimizer.skipped_in_row)) == (1, 0)


def test_survives_a_round_trip_through_its_config():
    optimizer = SkippingAdam(0.25, **OPTIONS)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert isinstance(again, SkippingAdam)
    assert again.get_config() == optimizer.get_config()


class Updates(keras.callbacks.Callback):
    done = 0

    def on_train_batch_end(self, batch, logs=None):
        self.done += 1


def test_the_guard_stops_after_so_many_in_a_row():
    updates, reports = Updates(), []
    model = fit(
        SkippingAdam(0.1), bad(slice(2, 12)), Y, NanGuard(limit=2, report=reports.append), updates
    )
    # The first update is good; the counter is looked at after two, with one skipped, and four.
    assert updates.done == 4
    assert reports == [1, 3]
    assert np.isfinite(model.get_weights()[0]).all()


def test_the_guard_lets_a_few_pass():
    updates, reports = Updates(), []
    fit(SkippingAdam(0.1), bad([3, 7]), Y, NanGuard(limit=2, report=reports.append), updates)
    assert (updates.done, reports) == (6, [1, 2])


def test_the_guard_tells_in_place_of_stopping():
    updates, told = Updates(), []
    fit(SkippingAdam(0.1), bad(slice(0, 12)), Y, NanGuard(limit=3, on_limit=told.append), updates)
    assert updates.done == 6
    assert told[:2] == [3, 6]


def test_the_guard_refuses_what_it_cannot_watch():
    with pytest.raises(ValueError, match=r"`limit` must be a positive integer, received 0"):
        NanGuard(limit=0)
    with pytest.raises(ValueError, match="such as SkippingAdam; received Adam"):
        fit(keras.optimizers.Adam(), X, Y, NanGuard())
