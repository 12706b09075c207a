"""`SkippingAdam` compared with Adam, and `SkippingAdam` with `NanGuard` in a user's own `fit`."""

import os
import random
import subprocess
import sys
from functools import partial
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_seq.callbacks import NanGuard
from keras_seq.schedules import InverseSquareRoot
from keras_seq.training import SkippingAdam

pytestmark = pytest.mark.jax

# `SkippingAdam` reaches this EMA momentum at the second update, so its averages equal Keras'.
OPTIONS = {"use_ema": True, "ema_momentum": 0.1, "global_clipnorm": 1.0}
generator = np.random.default_rng(0)
X = generator.normal(size=(12, 3)).astype("float32")
Y = generator.normal(size=(12, 1)).astype("float32")


def fit(optimizer, x, y, *callbacks):
    """Trains on batches of two rows in order and returns the model."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(1)])
    model.compile(optimizer, "mse")
    model.fit(x, y, batch_size=2, shuffle=False, verbose=0, callbacks=list(callbacks))
    return model


def bad(rows):
    x = X.copy()
    x[rows] = np.nan
    return x


@pytest.mark.slow
@pytest.mark.parametrize("bad_rows", [[], [0, 5, 11]])
def test_skipping_adam_equals_adam_on_batches_with_finite_gradients(bad_rows):
    skipping = SkippingAdam(InverseSquareRoot(0.1, 3), **OPTIONS)
    model = fit(skipping, bad(bad_rows), Y)
    left_out = {row // 2 for row in bad_rows}
    good = [row for row in range(12) if row // 2 not in left_out]
    adam = keras.optimizers.Adam(InverseSquareRoot(0.1, 3), **OPTIONS)
    expected = fit(adam, X[good], Y[good])
    # The tolerance allows for float32: an update in one operation rounds 1 - beta_2 differently.
    # Adam lacks the last variables, which count skipped updates.
    close = partial(np.testing.assert_allclose, rtol=1e-4, atol=5e-6)
    for weight, other in zip(model.get_weights(), expected.get_weights(), strict=True):
        close(weight, other)
    for variable, other in zip(skipping.variables, adam.variables, strict=False):
        close(variable.numpy(), other.numpy(), err_msg=variable.path)
    assert int(skipping.skipped) == len(left_out)
    assert int(skipping.skipped_in_row) == (1 if 11 in bad_rows else 0)


def test_optimizer_variables_are_those_of_adam_and_its_own_counters():
    """Checkpoints store the variables in this order."""
    optimizer = SkippingAdam(0.1, use_ema=True, micro_batches=2, initial_loss_scale=4.0)
    optimizer.build([keras.Variable([1.0], name="a"), keras.Variable([1.0], name="b")])
    assert [variable.path.split("/")[1] for variable in optimizer.variables] == [
        *("iteration", "learning_rate", "a_average", "b_average"),
        *("a_momentum", "a_velocity", "b_momentum", "b_velocity"),
        *("skipped", "skipped_in_row", "loss_scale", "loss_scale_steps"),
        *("micro_batch", "a_gradient_sum", "b_gradient_sum"),
    ]


def test_average_overwrites_the_weights_every_n_updates():
    options = {"use_ema": True, "ema_momentum": 0.1, "ema_overwrite_frequency": 2}
    results = []
    for optimizer in (SkippingAdam(0.1, **options), keras.optimizers.Adam(0.1, **options)):
        weight = keras.Variable([1.0, 2.0])
        optimizer.build([weight])
        for gradient in ([1.0, -1.0], [3.0, 2.0], [-1.0, 1.0]):
            optimizer.apply([keras.ops.convert_to_tensor(gradient)])
            results.append(np.array(weight.numpy()))
    np.testing.assert_allclose(results[:3], results[3:], rtol=1e-5)


def test_gradients_whose_norm_overflows_are_skipped():
    optimizer = SkippingAdam(0.1)
    weight = keras.Variable([1.0, 1.0])
    optimizer.build([weight])
    optimizer.apply([keras.ops.convert_to_tensor([3e19, 0.0])])
    assert (weight.numpy().tolist(), int(optimizer.skipped)) == ([1.0, 1.0], 1)
    optimizer.apply([keras.ops.convert_to_tensor([3.0, 0.0])])
    assert weight.numpy()[0] == pytest.approx(0.9)
    assert (int(optimizer.skipped), int(optimizer.skipped_in_row)) == (1, 0)


def test_skipping_adam_round_trips_through_its_config():
    optimizer = SkippingAdam(0.25, **OPTIONS)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert isinstance(again, SkippingAdam)
    assert again.get_config() == optimizer.get_config()


class Updates(keras.callbacks.Callback):
    done = 0

    def on_train_batch_end(self, batch, logs=None):
        self.done += 1


def test_nan_guard_stops_after_n_skipped_updates_in_a_row():
    updates, reports = Updates(), []
    model = fit(
        SkippingAdam(0.1), bad(slice(2, 12)), Y, NanGuard(limit=2, report=reports.append), updates
    )
    # The first update is good; the second and the third are skipped, which reaches the limit.
    assert updates.done == 3
    assert reports == [1, 2]
    assert np.isfinite(model.get_weights()[0]).all()


@pytest.mark.parametrize(
    ("bad_updates", "done"),
    # Three skips in a row that begin between two checks, and two series of only two skips.
    [([2, 3, 4], 4), ([2, 3, 5, 6], 6)],
)
def test_nan_guard_stops_at_the_limit_wherever_the_skips_begin(bad_updates, done):
    updates, reports = Updates(), []
    rows = [row for update in bad_updates for row in (2 * update - 2, 2 * update - 1)]
    fit(SkippingAdam(0.1), bad(rows), Y, NanGuard(limit=3, report=reports.append), updates)
    assert updates.done == done
    assert reports[-1] == len(bad_updates)


def test_nan_guard_stops_at_the_same_update_despite_restarts():
    """Compares with a manual count over random updates; restarts keep the optimizer."""
    generator = random.Random(1)
    stopped = 0
    for limit in (1, 2, 3, 4, 5, 6):
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
        model.compile(SkippingAdam(0.1), "mse")
        model.optimizer.build(model.trainable_variables)
        model.stop_training = False
        in_row, guard = 0, None
        for _ in range(24):
            if guard is None or generator.random() < 0.3:
                guard = keras.callbacks.CallbackList([NanGuard(limit)], model=model)
                guard.on_train_begin()
                guard.on_epoch_begin(0)
                batch = 0
            good = generator.random() < 0.35
            in_row = 0 if good else in_row + 1
            model.optimizer.apply([keras.ops.full((1, 1), 1.0 if good else np.nan)])
            guard.on_train_batch_end(batch)
            batch += 1
            assert model.stop_training == (in_row == limit)
            if model.stop_training:
                stopped += 1
                break
    assert 0 < stopped < 6


def test_nan_guard_calls_on_limit_instead_of_stopping():
    updates, told = Updates(), []
    fit(SkippingAdam(0.1), bad(slice(0, 12)), Y, NanGuard(limit=3, on_limit=told.append), updates)
    assert updates.done == 6
    assert told[:2] == [3, 6]


def test_nan_guard_rejects_a_bad_limit_and_other_optimizers():
    with pytest.raises(ValueError, match=r"`limit` must be a positive integer, received 0"):
        NanGuard(limit=0)
    with pytest.raises(ValueError, match="such as SkippingAdam; received Adam"):
        fit(keras.optimizers.Adam(), X, Y, NanGuard())


REPLICAS = """
import keras, numpy as np, tensorflow as tf
from keras_seq.storage.checkpoints import CheckpointStore
from keras_seq.training import SkippingAdam
from keras_seq.callbacks import ExactCheckpoint
(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

def refused(call):
    try:
        call()
    except ValueError as error:
        print(error)

with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    for options in ({}, {"micro_batches": 2}):
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        model.compile(SkippingAdam(0.1, **options), "mse")
        refused(lambda: model.fit(np.ones((8, 3)), np.ones((8, 1)), batch_size=4, verbose=0))
    model.compile("adam", "mse")
    refused(lambda: ExactCheckpoint(CheckpointStore("unused"), 1, 2).restore(model))
    model.fit(np.ones((8, 3)), np.ones((8, 1)), batch_size=4, verbose=0)
with tf.distribute.OneDeviceStrategy("CPU:1").scope():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(SkippingAdam(0.1), "mse")
    model.fit(np.ones((8, 3)), np.ones((8, 1)), batch_size=4, verbose=0)
    print(int(model.optimizer.iterations))
"""


@pytest.mark.process
@pytest.mark.skipif(keras.backend.backend() == "jax", reason="`tf.distribute` is TensorFlow's")
def test_tensorflow_replicas_raise_a_descriptive_value_error(tmp_path):
    said = subprocess.run(
        [sys.executable, "-c", REPLICAS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0, said.stderr
    plain, several, checkpoint, alone = said.stdout.splitlines()
    assert alone == "2"
    assert plain == several
    assert plain.startswith("SkippingAdam cannot update from within a replica of Mirrored")
    assert "compile with `keras.optimizers.Adam`, or let `keras_seq.train`" in plain
    assert checkpoint.startswith("ExactCheckpoint received a model of MirroredStrategy with 2 ")
    assert not list(tmp_path.iterdir())
