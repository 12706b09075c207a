"""Callbacks count updates correctly with `steps_per_execution` above 1."""

import io

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq import callbacks
from keras_seq.storage.checkpoints import CheckpointStore
from keras_seq.training import EventLog, OncePerUpdate, SkippingAdam

pytestmark = pytest.mark.jax

X = np.random.default_rng(0).normal(size=(24, 2, 3)).astype("float32")


class Gated(keras.layers.Layer):
    """Returns its input unchanged, and has a variable that a callback sets."""

    def __init__(self):
        super().__init__()
        self.gate = self.add_weight(name="gate", shape=(), trainable=False)

    def call(self, inputs):
        return inputs + 0 * self.gate


def compiled(size, **options):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((3,)), Gated(), keras.layers.Dense(1)])
    model.compile(SkippingAdam(0.01, **options), "mse", steps_per_execution=size, jit_compile=False)
    return model


def batch(step):
    # Updates 9 to 12, one execution of four, get NaN inputs.
    return X[step % 24] * (np.nan if 8 <= step < 12 else 1), np.zeros((2, 1), "float32")


def test_callbacks_count_all_updates_with_four_steps_per_execution(tmp_path):
    """Epochs have 8 updates; an action due within an execution of 4 runs at its end."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    model = compiled(4)
    saved, validated, shown, rates, told, stream = [], [], [], [], [], io.StringIO()
    exact = callbacks.ExactCheckpoint(CheckpointStore(tmp_path / "exact", keep=9), 7, 8)
    exact.restore(model)
    log = EventLog(tmp_path / "events")
    average = callbacks.AverageWeights(9, every=5, set_at_end=False)
    limit = callbacks.StopAtLimit(max_steps=14)
    chosen = [
        callbacks.Checkpoint(saved.append, every=3),
        callbacks.Validation(lambda step: validated.append(step) or {"bleu": 0.0}, 6, "bleu"),
        callbacks.SampleTranslations(list, ["a"], 5, report=lambda step, _: shown.append(step)),
        callbacks.AttentionSnapshots(lambda: [np.eye(2)], tmp_path / "attention", every=9),
        callbacks.FollowSchedule(model.layers[0].gate, lambda step: rates.append(step) or 0.0),
        callbacks.Progress(seconds=1e-9, stream=stream, max_steps=14),
        callbacks.TensorBoard(log, every=9),
        callbacks.NanGuard(limit=4, on_limit=lambda count: told.append((limit.step, count))),
        average,
        exact,
    ]
    model.fit(
        exact.remaining(batch),
        epochs=3,
        steps_per_epoch=8,
        shuffle=False,
        verbose=0,
        callbacks=[limit, *chosen],
    )
    log.close()
    # The optimizer itself counts the applied and the skipped updates.
    made, skipped = (
        int(ops.convert_to_numpy(variable.value))
        for variable in (model.optimizer.iterations, model.optimizer.skipped)
    )
    assert (made, skipped) == (12, 4)
    assert [callback.step for callback in (limit, *chosen)] == [16] * 11
    # For example, the executions of 4 updates contain these multiples of 3: 3; 6; 9 and 12; 15.
    assert saved == [4, 8, 12, 16]
    assert validated == [8, 12, 16]
    assert shown == [8, 12, 16]
    assert sorted(path.name for path in (tmp_path / "attention").iterdir()) == [
        "step-00000012-0.png"
    ]
    assert rates == [0, 4, 8, 12]
    assert [line.split(" | ")[0] for line in stream.getvalue().splitlines()] == [
        "step 8",
        "step 12",
        "step 16",
    ]
    events = accumulator.EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    assert [event.step for event in events.Scalars("training/loss")] == [12]
    assert told == [(12, 4)]
    assert average.kept == [8, 12, 16]
    assert exact.store.steps == [8, 16]


def test_once_per_update_counts_two_updates_per_execution():
    model, saved = compiled(4, micro_batches=2), []
    inner = OncePerUpdate([callbacks.Checkpoint(saved.append, every=3)], micro_batches=2)
    # An epoch has 6 updates, and an execution of 4 batches makes 2 of them.
    model.fit(X.reshape(48, 3)[:24], np.zeros((24, 1)), batch_size=2, verbose=0, callbacks=[inner])
    assert int(ops.convert_to_numpy(model.optimizer.iterations.value)) == 6
    assert saved == [4, 6]


def test_callbacks_reject_steps_per_execution_that_cannot_be_counted():
    x, y = np.ones((12, 3)), np.ones((12, 1))
    limit = callbacks.StopAtLimit()
    with pytest.raises(ValueError, match="StopAtLimit cannot count .* of 6 batches .* 4 at a time"):
        compiled(4).fit(x, y, batch_size=2, verbose=0, callbacks=[limit])
    with pytest.raises(ValueError, match="an epoch of unknown length .* give `fit` `steps_per"):
        compiled(4).fit(((x, y) for _ in "12"), shuffle=False, verbose=0, callbacks=[limit])
    inner = OncePerUpdate([limit], micro_batches=2)
    with pytest.raises(ValueError, match="3 batches in an execution, and 2 make an update"):
        compiled(3).fit(x, y, batch_size=2, verbose=0, callbacks=[inner])
