"""`Checkpoint` in a user's own `fit`."""

import keras
import numpy as np
import pytest

from keras_seq.callbacks import Checkpoint, StopAtLimit

pytestmark = pytest.mark.jax

X, Y = np.ones((8, 2), "float32"), np.ones((8, 1), "float32")


def fit(*callbacks, epochs=2):
    """Trains with 4 updates per epoch."""
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(X, Y, batch_size=2, epochs=epochs, verbose=0, callbacks=list(callbacks))


@pytest.mark.parametrize(
    ("every", "steps"), [(1, [1, 2, 3, 4, 5, 6, 7, 8]), (3, [3, 6, 8]), (4, [4, 8]), (100, [8])]
)
def test_checkpoint_saves_every_n_updates_and_once_at_the_end(every, steps):
    saved = []
    fit(Checkpoint(saved.append, every=every))
    assert saved == steps


def test_checkpoint_saves_when_another_callback_stops_training():
    saved = []
    fit(StopAtLimit(max_steps=5), Checkpoint(saved.append, every=3))
    assert saved == [3, 5]


def test_checkpoint_counts_updates_from_initial_step():
    saved = []
    fit(Checkpoint(saved.append, every=5, initial_step=8))
    assert saved == [10, 15, 16]


def test_checkpoint_works_with_keras_save_weights(tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    callback = Checkpoint(
        save=lambda step: model.save_weights(tmp_path / f"{step}.weights.h5"), every=2
    )
    model.fit(X, Y, batch_size=2, verbose=0, callbacks=[callback])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.weights.h5", "4.weights.h5"]
    final = model.get_weights()
    model.load_weights(tmp_path / "4.weights.h5")
    for loaded, weight in zip(model.get_weights(), final, strict=True):
        np.testing.assert_array_equal(loaded, weight)


@pytest.mark.parametrize("stop", [True, False])
def test_last_checkpoint_has_the_weights_of_the_last_update_not_their_average(stop):
    """At its end, `fit` replaces the weights with the optimizer's moving average."""
    found = {}
    for use_ema in (False, True):
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.02, use_ema=use_ema, ema_momentum=0.99), "mse")
        saved = {}
        model.fit(
            X,
            Y,
            batch_size=2,
            epochs=2,
            verbose=0,
            callbacks=[
                Checkpoint(
                    lambda step, saved=saved, model=model: saved.update(
                        {step: model.get_weights()}
                    ),
                    every=100,
                ),
                StopAtLimit(max_steps=6 if stop else None),
            ],
        )
        assert list(saved) == [6 if stop else 8]
        found[use_ema] = list(saved.values())[0], model.get_weights()
    for plain, averaging in zip(found[False][0], found[True][0], strict=True):
        np.testing.assert_allclose(averaging, plain, rtol=1e-6)
    # After `fit`, the model has the averaged weights.
    assert abs(found[True][1][0] - found[True][0][0]).max() > 1e-3


@pytest.mark.parametrize("every", [0, -2, 1.5, None])
def test_checkpoint_rejects_an_interval_that_is_not_a_positive_integer(every):
    with pytest.raises(ValueError, match=rf"`every` must be a positive integer, received {every}"):
        Checkpoint(print, every=every)
