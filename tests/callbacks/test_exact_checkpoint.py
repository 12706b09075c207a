"""Stops and resumes `fit` in one process; tests/faults/test_exact_fit.py kills processes."""

import keras
import numpy as np
import pytest
from keras import ops
from weekly import weekly_on_jax

from keras_seq import InputError
from keras_seq.callbacks import AverageWeights, ExactCheckpoint, StopAtLimit, Validation
from keras_seq.storage.checkpoints import CheckpointStore
from keras_seq.training import SkippingAdam

pytestmark = pytest.mark.jax

STEPS_PER_EPOCH = 6


def batch(step):
    """Returns token batches in equal pairs; the width alternates from pair to pair."""
    generator = np.random.default_rng(step // 2)
    tokens = generator.integers(1, 9, (4, 3 + step // 2 % 2), dtype="int32")
    return tokens, np.cumsum(tokens, axis=1).astype("float32")[..., None]


def make(optimizer=None):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(9, 4),
            keras.layers.Dropout(0.4),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer or keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    return model


class Ends(keras.callbacks.Callback):
    """Records the logs at the end of each epoch; a resumed epoch overwrites its earlier logs."""

    def __init__(self):
        super().__init__()
        self.logs = {}

    def on_epoch_end(self, epoch, logs=None):
        self.logs[epoch] = dict(logs)


def fit(model, folder, *others, epochs=3, every=4, batch=batch):
    checkpoint = ExactCheckpoint(CheckpointStore(folder), every, STEPS_PER_EPOCH)
    checkpoint.restore(model)
    model.fit(
        checkpoint.remaining(batch, lengths_vary=True),
        initial_epoch=checkpoint.epoch,
        epochs=epochs,
        steps_per_epoch=STEPS_PER_EPOCH,
        shuffle=False,
        verbose=0,
        callbacks=[*others, checkpoint],
    )
    return checkpoint


def state(model):
    variables = [*model.variables, *model.optimizer.variables]
    return [ops.convert_to_numpy(variable.value).tobytes() for variable in variables]


@weekly_on_jax
@pytest.mark.slow
def test_fit_stopped_at_any_step_resumes_to_the_same_state(tmp_path):
    """Stops inside an epoch and on both sides of its end; logs still cover complete epochs."""
    stops = [1, 4, 6, 7, 17]
    straight, expected = make(), Ends()
    fit(straight, tmp_path / "straight", expected)
    ends = Ends()
    for stop in stops:
        stopped = fit(make(), tmp_path / "a", StopAtLimit(max_steps=stop - ends_at(tmp_path)), ends)
        assert stopped.step == stop == CheckpointStore(tmp_path / "a").latest_step
    model = make()
    checkpoint = fit(model, tmp_path / "a", ends)
    assert (checkpoint.step, checkpoint.epoch) == (18, 3)
    assert state(model) == state(straight)
    assert ends.logs == expected.logs


def ends_at(folder):
    return CheckpointStore(folder / "a").latest_step or 0


def test_fit_resumes_between_the_micro_batches_of_an_update(tmp_path):
    """Uses 3 batches per update; the loss of the second update is NaN."""

    def broken(step):
        inputs, targets = batch(step)
        return inputs, targets * (np.nan if step // 3 == 1 else 1.0)

    def model():
        return make(SkippingAdam(0.01, micro_batches=3))

    straight = model()
    fit(straight, tmp_path / "straight", batch=broken)
    fit(model(), tmp_path / "a", StopAtLimit(max_steps=4), batch=broken)
    ended = model()
    fit(ended, tmp_path / "a", batch=broken)
    assert int(ended.optimizer.skipped.value) == 1
    assert state(ended) == state(straight)


@pytest.mark.slow
@pytest.mark.weekly
def test_fit_resumes_exactly_with_a_growing_loss_scale_and_averaged_weights(tmp_path):
    def model():
        inner = keras.optimizers.Adam(0.01, use_ema=True)
        scaled = keras.optimizers.LossScaleOptimizer(
            inner, initial_scale=4.0, dynamic_growth_steps=5
        )
        return make(scaled)

    straight = model()
    fit(straight, tmp_path / "straight")
    fit(model(), tmp_path / "a", StopAtLimit(max_steps=8))
    ended = model()
    fit(ended, tmp_path / "a")
    # The loss scale doubles every 5 updates: from 4 to 32 in 18 updates.
    assert float(ended.optimizer.dynamic_scale.value) == 32
    assert state(ended) == state(straight)


def test_exact_checkpoint_carries_the_state_of_other_callbacks(tmp_path):
    def run(folder, stop=None):
        """Trains, and returns the states of Keras's `EarlyStopping` and of a `Validation`."""
        model = make()
        checkpoint = ExactCheckpoint(CheckpointStore(folder), 100, STEPS_PER_EPOCH)
        checkpoint.restore(model)
        early = keras.callbacks.EarlyStopping("loss", patience=3, min_delta=1e9)
        validation = Validation(
            lambda step: {"score": -abs(step - 2)}, 2, "score", initial_step=checkpoint.step
        )
        checkpoint.carry("early", early, ("best", "wait", "best_epoch"))
        checkpoint.carry("validation", validation)
        others = [early, validation] + ([StopAtLimit(max_steps=stop)] if stop else [])
        model.fit(
            checkpoint.remaining(batch, lengths_vary=True),
            initial_epoch=checkpoint.epoch,
            epochs=9,
            steps_per_epoch=STEPS_PER_EPOCH,
            shuffle=False,
            verbose=0,
            callbacks=[*others, checkpoint],
        )
        return checkpoint.step, early.best, early.best_epoch, early.stopped_epoch, validation.state

    straight = run(tmp_path / "straight")
    assert straight[0] == 4 * STEPS_PER_EPOCH and straight[3] == 3
    assert (straight[4]["best_step"], straight[4]["without_better"]) == (2, 11)
    run(tmp_path / "a", stop=8)
    assert run(tmp_path / "a") == straight


def test_exact_checkpoint_carries_the_states_of_average_weights(tmp_path):
    """Averages the last 3 and the best 3 weights, some of them from before the interruption."""

    def run(folder, stop=None, carried=True):
        model = make()
        checkpoint = ExactCheckpoint(CheckpointStore(folder), 100, STEPS_PER_EPOCH)
        begin = checkpoint.restore(model)
        last = AverageWeights(3, every=2, initial_step=begin)
        best = AverageWeights(
            3, every=2, set_at_end=False, judge=lambda step: -abs(step - 6), initial_step=begin
        )
        if carried:
            checkpoint.carry("last", last)
            checkpoint.carry("best", best)
        limits = [StopAtLimit(max_steps=stop)] if stop else []
        model.fit(
            # Batches with a step divisible by 4 have the same width.
            checkpoint.remaining(lambda step: batch(4 * step)),
            initial_epoch=checkpoint.epoch,
            epochs=2,
            steps_per_epoch=STEPS_PER_EPOCH,
            shuffle=False,
            verbose=0,
            callbacks=[last, best, *limits, checkpoint],
        )
        weights = [ops.convert_to_numpy(w.value).tobytes() for w in model.weights]
        return last.kept, best.kept, weights, [mean.tobytes() for mean in best.average]

    straight = run(tmp_path / "straight")
    assert straight[:2] == ([8, 10, 12], [4, 6, 8])
    run(tmp_path / "a", stop=9)
    assert run(tmp_path / "a") == straight
    # Running the completed script again gives the same averages.
    assert run(tmp_path / "a") == straight
    # A run without `carry` loses its own averages but keeps the stored ones.
    run(tmp_path / "b", stop=7)
    run(tmp_path / "b", stop=2, carried=False)
    assert run(tmp_path / "b")[:2] == ([6, 10, 12], [2, 4, 6])


def test_second_exact_checkpoint_in_one_directory_raises_input_error(tmp_path):
    """The directory is locked during the first `fit` and free after its end or exception."""
    refusals = []

    class Second(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            for begin in (
                lambda: fit(make(), tmp_path),
                lambda: CheckpointStore(tmp_path).lock("x"),
            ):
                with pytest.raises(InputError) as refusal:
                    begin()
                refusals.append(str(refusal.value))
            raise KeyboardInterrupt

    model = make()
    with pytest.raises(KeyboardInterrupt):
        fit(model, tmp_path, Second())
    assert refusals[0] == (
        f"{tmp_path}: another `fit` with an ExactCheckpoint is at work there: wait for it, end it, "
        "or name another directory"
    )
    # The ended `fit` has released its lock, although its model still exists.
    assert model is not None
    CheckpointStore(tmp_path).lock("x").release()
    assert fit(make(), tmp_path).step == 18
    CheckpointStore(tmp_path).lock("x").release()


def test_non_finite_weights_are_not_saved(tmp_path):
    def broken(step):
        inputs, targets = batch(step)
        return inputs, targets * (np.nan if step == 5 else 1.0)

    with pytest.raises(InputError, match="not finite"):
        fit(make(), tmp_path, batch=broken, every=2)
    assert CheckpointStore(tmp_path).latest_step == 4


def test_exact_checkpoint_rejects_resuming_with_a_different_setup(tmp_path):
    store = CheckpointStore(tmp_path)
    fit(make(), tmp_path, StopAtLimit(max_steps=8))
    model = make()
    checkpoint = ExactCheckpoint(store, 4, STEPS_PER_EPOCH)
    with pytest.raises(ValueError, match="Call `restore"):
        checkpoint.remaining(batch)
    assert checkpoint.restore(model) == 8
    options = {"verbose": 0, "shuffle": False, "epochs": 3, "callbacks": [checkpoint]}
    with pytest.raises(ValueError, match="batches that are left"):
        model.fit(*batch(0), steps_per_epoch=STEPS_PER_EPOCH, **options)
    with pytest.raises(ValueError, match="`initial_epoch=checkpoint.epoch`"):
        model.fit(checkpoint.remaining(batch, True), steps_per_epoch=STEPS_PER_EPOCH, **options)
    with pytest.raises(ValueError, match="expected `steps_per_epoch=6`"):
        model.fit(checkpoint.remaining(batch, True), steps_per_epoch=5, **options)
    with pytest.raises(ValueError, match="was made with 6"):
        ExactCheckpoint(store, 4, 7).restore(make())
    other = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    with pytest.raises(ValueError, match="needs a model that is compiled"):
        checkpoint.restore(other)
    other.compile("adam", "mse")
    with pytest.raises(InputError, match="does not belong to this model"):
        ExactCheckpoint(store, 4, STEPS_PER_EPOCH).restore(other)
    with pytest.raises(TypeError, match="EarlyStopping has no `state` and `restore`"):
        checkpoint.carry("early", keras.callbacks.EarlyStopping())
    with pytest.raises(ValueError, match="`every` must be a positive integer"):
        ExactCheckpoint(store, 0, 1)
