"""Monotonic attention weights against the paper's sum over all alignments."""

import keras
import numpy as np
import pytest
import reference_attention as reference
from differentiation import gradients
from keras import ops

from keras_seq.layers.attention.monotonic import monotonic_attention


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def arrays(steps, certain=False):
    """Returns probabilities and previous weights of two rows. With `certain`, some are 0 or 1."""
    generator = np.random.default_rng(steps)
    chances = generator.uniform(size=(2, steps))
    if certain:
        chances[generator.uniform(size=chances.shape) < 0.3] = 0
        chances[generator.uniform(size=chances.shape) < 0.3] = 1
    previous = generator.dirichlet(np.ones(steps), size=2)
    return chances.astype("float32"), previous.astype("float32")


@pytest.mark.parametrize("mode", ["parallel", "recursive"])
@pytest.mark.parametrize("certain", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 7, 8, 9])
def test_monotonic_weights_equal_the_sum_over_all_paths(mode, certain, steps):
    chances, previous = arrays(steps, certain)
    got = numpy_of(monotonic_attention(chances, previous, mode))
    expected = [reference.monotonic(*row) for row in zip(chances, previous, strict=True)]
    np.testing.assert_allclose(got, expected, atol=1e-6)


@pytest.mark.parametrize("mode", ["parallel", "recursive"])
def test_monotonic_gradients_equal_finite_differences(mode):
    chances, previous = arrays(6, certain=True)
    factors = np.random.default_rng(0).normal(size=chances.shape)

    def loss(chances, previous):
        weights = monotonic_attention(chances, previous, mode)
        return ops.sum(weights * factors.astype("float32"))

    def slow(chances, previous):
        rows = zip(factors, chances, previous, strict=True)
        return sum(factor @ reference.monotonic(*row) for factor, *row in rows)

    got, _ = gradients(loss, [chances, previous])
    for which, gradient in enumerate(got):
        for place in np.ndindex(chances.shape):
            near = [[array.astype("float64") for array in (chances, previous)] for _ in range(2)]
            near[0][which][place] += 1e-4
            near[1][which][place] -= 1e-4
            expected = (slow(*near[0]) - slow(*near[1])) / 2e-4
            np.testing.assert_allclose(gradient[place], expected, atol=1e-5)


@pytest.mark.parametrize("mode", ["parallel", "recursive"])
def test_monotonic_weights_stay_accurate_when_probabilities_are_near_1(mode):
    # The cumulative product of 1 - p is 1e-60 after 20 steps. Division by it gives 0 or NaN.
    chances = np.full((1, 30), 0.999, "float32")
    previous = np.eye(30, dtype="float32")[None, 25]
    weights = numpy_of(monotonic_attention(chances, previous, mode))
    np.testing.assert_allclose(weights[0, 25:28], [0.999, 0.000999, 9.99e-7], rtol=1e-3)
    assert (weights[0, :25] == 0).all()


@pytest.mark.parametrize("mode", ["parallel", "recursive", "hard"])
def test_certain_choices_move_to_the_first_position_with_probability_1(mode):
    generator = np.random.default_rng(0)
    stays = (generator.uniform(size=(40, 7)) < 0.3).astype("float32")
    previous = np.eye(8)[generator.integers(0, 8, 40)][:, :7].astype("float32")
    got = numpy_of(monotonic_attention(stays, previous, mode))
    expected = [reference.hard_monotonic(*row) for row in zip(stays, previous, strict=True)]
    np.testing.assert_array_equal(got, expected)
    # Some rows attend to nothing: they have no real step, or they passed the end before.
    assert 0 < got.sum() < 40


@pytest.mark.parametrize("mode", ["parallel", "recursive", "hard"])
def test_extra_middle_axes_leave_monotonic_weights_unchanged(mode):
    chances, previous = arrays(5)
    chances = (chances > 0.5).astype("float32")
    together = monotonic_attention(np.stack([chances] * 3, 1), np.stack([previous] * 3, 1), mode)
    alone = numpy_of(monotonic_attention(chances, previous, mode))
    np.testing.assert_allclose(numpy_of(together), np.stack([alone] * 3, 1), atol=1e-7)


@pytest.mark.parametrize("mode", ["parallel", "recursive", "hard"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_monotonic_attention_keeps_the_input_dtype(mode, dtype):
    ones = ops.ones((1, 20), dtype)
    weights = monotonic_attention(ones / 2, ones / 20, mode)
    assert keras.backend.standardize_dtype(weights.dtype) == dtype


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX knows all sizes")
@pytest.mark.parametrize("mode", ["parallel", "recursive"])
def test_unknown_source_length_gives_the_eager_weights_and_gradients(mode):
    import tensorflow as tf

    def weights_and_gradients(chances, previous):
        with tf.GradientTape() as tape:
            tape.watch([chances, previous])
            weights = monotonic_attention(chances, previous, mode)
            loss = tf.reduce_sum(weights**2)
        return weights, *tape.gradient(loss, [chances, previous])

    unknown = tf.TensorSpec((None, None), tf.float32)
    graph = tf.function(weights_and_gradients, input_signature=[unknown, unknown])
    for steps in (1, 5, 9):
        tensors = [tf.constant(array) for array in arrays(steps, certain=True)]
        for got, expected in zip(graph(*tensors), weights_and_gradients(*tensors), strict=True):
            np.testing.assert_allclose(got, expected, atol=1e-6)


def test_unknown_monotonic_mode_raises_value_error():
    with pytest.raises(ValueError, match='"parallel", "recursive" or "hard", received .soft'):
        monotonic_attention(np.ones((1, 2)), np.ones((1, 2)), "soft")


@pytest.mark.parametrize("shape", [(1, 3), (2, 2), (1, 1, 2)])
def test_mismatched_monotonic_shapes_raise_value_error(shape):
    with pytest.raises(ValueError, match=r"received \(1, 2\) and \(.*: a weight for each"):
        monotonic_attention(np.ones((1, 2), "float32"), np.ones(shape, "float32"), "parallel")
