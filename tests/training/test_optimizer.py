"""The optimizer that `make_optimizer` creates from settings, and its updates of weights."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq.settings import load_settings
from keras_seq.training.optimizer import compile_model, make_optimizer

pytestmark = pytest.mark.jax


def of(**training):
    return make_optimizer(
        load_settings(overrides={f"training.{key}": value for key, value in training.items()})
    )


def rates(optimizer, count=4):
    """Returns the learning rates of the first updates."""
    weight = keras.Variable(np.zeros(1, "float32"))
    optimizer.build([weight])
    found = []
    for _ in range(count):
        found.append(float(keras.ops.convert_to_numpy(optimizer.learning_rate)))
        optimizer.apply([keras.ops.ones((1,))])
    return found


def test_make_optimizer_applies_each_learning_rate_schedule():
    common = {"learning_rate": 0.01, "warmup_steps": 2}
    np.testing.assert_allclose(rates(of(schedule="constant", **common)), [0.01] * 4, rtol=1e-6)
    np.testing.assert_allclose(
        rates(of(schedule="inverse_sqrt", **common)),
        [0.005, 0.01, 0.01 * (2 / 3) ** 0.5, 0.01 * 0.5**0.5],
        rtol=1e-5,
    )
    settings = load_settings(
        overrides={
            "training.schedule": "noam",
            "training.learning_rate": 1.0,
            "training.warmup_steps": 2,
            "model.units": 64,
        }
    )
    expected = [64**-0.5 * min(n**-0.5, n * 2**-1.5) for n in (1, 2, 3, 4)]
    np.testing.assert_allclose(rates(make_optimizer(settings)), expected, rtol=1e-5)


def test_cosine_schedule_ends_at_0_after_the_last_update():
    settings = load_settings(
        overrides={
            "training.schedule": "cosine",
            "training.learning_rate": 0.1,
            "training.warmup_steps": 2,
        }
    )
    # Half a cosine over the eight updates after the warmup.
    decay = [0.05 * (1 + np.cos(np.pi * n / 8)) for n in range(9)]
    expected = [0.1 / 3, 0.2 / 3, *decay]
    np.testing.assert_allclose(rates(make_optimizer(settings, 10), 11), expected, atol=1e-8)
    with pytest.raises(ValueError, match="needs `max_steps`, received None"):
        make_optimizer(settings)


def test_noam_schedule_of_a_recurrent_model_uses_the_decoder_units():
    settings = load_settings(
        overrides={
            "model.family": "rnn",
            "model.decoder_units": 16,
            "training.schedule": "noam",
            "training.learning_rate": 2.0,
            "training.warmup_steps": 1,
        }
    )
    np.testing.assert_allclose(rates(make_optimizer(settings), 1), [2 * 16**-0.5], rtol=1e-5)


def test_optimizer_equals_adam_with_the_given_betas():
    """Compares two updates with gradients 1 and 3 with Adam's formulas."""
    optimizer = of(
        schedule="constant", learning_rate=0.1, beta_1=0.8, beta_2=0.9, clip_norm=0, ema=0
    )
    weight = keras.Variable(np.zeros(1, "float32"))
    optimizer.build([weight])
    first = second = expected = 0.0
    for n, gradient in enumerate((1.0, 3.0), 1):
        optimizer.apply([keras.ops.full((1,), gradient)])
        first = 0.8 * first + 0.2 * gradient
        second = 0.9 * second + 0.1 * gradient**2
        expected -= 0.1 * (first / (1 - 0.8**n)) / (second / (1 - 0.9**n)) ** 0.5
        np.testing.assert_allclose(
            float(keras.ops.convert_to_numpy(weight.value)[0]), expected, rtol=1e-4
        )


@pytest.mark.parametrize(("clip_norm", "expected"), [(1.0, [0.6, 0.8]), (0.0, [3, 4]), (9, [3, 4])])
def test_optimizer_clips_the_global_gradient_norm(clip_norm, expected):
    optimizer = of(clip_norm=clip_norm, schedule="constant", beta_1=0.0, ema=0)
    weights = [keras.Variable(np.zeros(1, "float32")) for _ in range(2)]
    optimizer.build(weights)
    optimizer.apply([keras.ops.full((1,), 3.0), keras.ops.full((1,), 4.0)])
    # With beta_1 of 0 the first moment is the gradient itself.
    moments = [v for v in optimizer.variables if "momentum" in v.path]
    found = [float(keras.ops.convert_to_numpy(moment.value)[0]) for moment in moments]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("clip_norm", [0.0, 1.0])
def test_repeated_table_lookups_update_moments_like_a_dense_gradient(clip_norm):
    """In TensorFlow, the gradient of a table repeats a row that was looked up several times."""
    moments = []
    for lookup in (True, False):
        optimizer = of(clip_norm=clip_norm, ema=0)
        table = keras.Variable(np.zeros((3, 2), "float32"), name="table")
        optimizer.build([table])
        ids = np.array([0, 0, 2])
        factors = ops.convert_to_tensor(np.array([[1, 2], [3, -2], [1, 1]], "float32"))

        def loss(table, lookup=lookup, ids=ids, factors=factors):
            one_hot = ops.one_hot(ids, 3, dtype="float32")
            rows = ops.take(table, ids, axis=0) if lookup else ops.matmul(one_hot, table)
            return ops.sum(rows * factors)

        optimizer.apply(raw_gradients(loss, table))
        moments.append([v.numpy() for v in optimizer.variables if "table_" in v.path])
    assert len(moments[0]) == 2
    for found, expected in zip(*moments, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def raw_gradients(loss, variable):
    """Returns the gradients as the backend computes them, which may be sparse."""
    if keras.backend.backend() == "jax":
        import jax

        return [jax.grad(loss)(variable.value)]
    import tensorflow as tf

    with tf.GradientTape() as tape:
        value = loss(variable.value)
    return [tape.gradient(value, variable.value)]


@pytest.mark.parametrize("ema", [0.0, 0.5])
def test_optimizer_keeps_an_average_only_when_ema_is_set(ema):
    optimizer = of(ema=ema)
    assert optimizer.use_ema is bool(ema)
    if ema:
        assert optimizer.ema_momentum == ema


def test_moving_average_follows_its_formula():
    """average = m average + (1 - m) weight, where m is min(0.2, t / (t + 9)) after t updates."""
    optimizer = of(ema=0.2, schedule="constant", learning_rate=0.1)
    weight = keras.Variable(np.zeros(2, "float32"))
    optimizer.build([weight])
    (average,) = [v for v in optimizer.variables if v.path.endswith("average")]
    expected = np.zeros(2)
    gradients = [1.0, 0.0], [-2.0, 3.0], [0.5, 0.5], [4.0, -1.0], [-1.0, 2.0]
    for momentum, gradient in zip((0, 1 / 10, 2 / 11, 0.2, 0.2), gradients, strict=True):
        optimizer.apply([ops.convert_to_tensor(np.array(gradient, "float32"))])
        value = np.array(weight.numpy())
        expected = momentum * expected + (1 - momentum) * value
        np.testing.assert_allclose(average.numpy(), expected, rtol=1e-5)
    optimizer.finalize_variable_values([weight])
    np.testing.assert_allclose(weight.numpy(), expected, rtol=1e-5)


def test_compile_model_makes_a_model_ready_to_train():
    model = keras.Sequential([keras.Input((4, 3)), keras.layers.Dense(9)])
    compile_model(model, load_settings(overrides={"training.label_smoothing": 0.2}))
    assert (model.loss.label_smoothing, model.loss.reduction) == (0.2, "sum")
    assert model.optimizer.built
    x = np.ones((2, 4, 3), "float32")
    model.fit(x, np.full((2, 4), 5), verbose=0)
