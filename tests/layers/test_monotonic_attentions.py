"""Both monotonic attentions against numpy."""

import keras
import numpy as np
import pytest
import reference_attention as reference
import reference_recurrent
from keras import ops

from keras_seq.layers.attention.bahdanau_monotonic_attention import BahdanauMonotonicAttention
from keras_seq.layers.attention.luong_monotonic_attention import LuongMonotonicAttention

LENGTHS = (5, 3, 1)
MASK = np.arange(5)[None] < np.array(LENGTHS)[:, None]
STEPS = 3


def bahdanau(**arguments):
    return BahdanauMonotonicAttention(8, name="attention", **arguments)


def luong(**arguments):
    return LuongMonotonicAttention(name="attention", **arguments)


ENERGIES = {bahdanau: reference.additive_energies, luong: reference.general_energies}
both = pytest.mark.parametrize("kind", [bahdanau, luong])


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def arrays():
    generator = np.random.default_rng(0)
    query = generator.normal(size=(3, STEPS, 4)).astype("float32")
    value = generator.normal(size=(3, 5, 6)).astype("float32")
    return query, value


def made(kind, **arguments):
    layer = kind(**arguments)
    layer.build((None, None, 4), (None, None, 6))
    reference_recurrent.randomize(layer)
    return layer


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (bahdanau, {}),
        (bahdanau, {"normalize": True, "mode": "recursive"}),
        (bahdanau, {"mode": "hard"}),
        (luong, {}),
        (luong, {"scale": True, "mode": "recursive"}),
        (luong, {"mode": "hard"}),
    ],
)
def test_monotonic_attention_equals_numpy(kind, arguments):
    layer, (query, value) = made(kind, **arguments), arrays()
    context, weights = map(numpy_of, layer(query, value, value_mask=MASK))
    named = reference_recurrent.named_arrays(layer)
    for row, length in enumerate(LENGTHS):
        real = value[row, :length].astype("float64")
        attend = reference.monotonic_attend(
            ENERGIES[kind](named, "attention"), hard=arguments.get("mode") == "hard"
        )
        for step in range(STEPS):
            expected = attend(query[row, step], real)
            np.testing.assert_allclose(weights[row, step, :length], expected, atol=1e-6)
            np.testing.assert_allclose(context[row, step], expected @ real, atol=1e-5)
        assert (weights[row, :, length:] == 0).all()


@both
def test_monotonic_attention_never_moves_backward(kind):
    layer, (query, value) = made(kind), arrays()
    weights = numpy_of(layer(query, value)[1])
    # The total weight up to a position can only decrease from step to step.
    assert (np.diff(np.cumsum(weights, axis=2), axis=1) <= 1e-6).all()


@both
def test_sigmoid_bias_starts_at_score_bias_init(kind):
    layer = kind(score_bias_init=-2.5)
    query, value = arrays()
    layer(query, value)
    assert float(numpy_of(layer.sigmoid_bias)) == -2.5
    context, weights = layer(query * 0, value * 0)
    # With scores of 0, the first position is chosen with probability sigmoid(-2.5).
    np.testing.assert_allclose(numpy_of(weights)[:, 0, 0], 1 / (1 + np.exp(2.5)), rtol=1e-5)
    assert not numpy_of(context).any()


@both
def test_fully_masked_row_has_zero_context_and_weights(kind):
    layer, (query, value) = made(kind), arrays()
    value[1] = np.nan
    mask = MASK & [[True], [False], [True]]
    context, weights = map(numpy_of, layer(query, value, value_mask=mask))
    assert (context[1] == 0).all() and (weights[1] == 0).all()
    assert np.isfinite(context).all() and (weights[0] > 0).any()


@both
def test_hypotheses_attended_together_equal_each_attended_alone(kind):
    layer, (query, value) = made(kind), arrays()
    projected = layer.project(ops.convert_to_tensor(value), MASK)
    state = np.random.default_rng(1).dirichlet(np.ones(5), size=(3, STEPS)).astype("float32")
    together = layer.attend(ops.convert_to_tensor(query), **projected, state=state, value_mask=MASK)
    for k in range(STEPS):
        alone = layer.attend(
            ops.convert_to_tensor(query[:, k : k + 1]),
            **projected,
            state=state[:, k : k + 1],
            value_mask=MASK,
        )
        for left, right in zip(together, alone, strict=True):
            np.testing.assert_allclose(numpy_of(left)[:, [k]], numpy_of(right), atol=1e-6)


@both
def test_sigmoid_noise_is_training_only_and_follows_the_seed(kind):
    query, value = arrays()
    layer = made(kind, sigmoid_noise=1.0, seed=1)
    noisy = numpy_of(layer(query, value, training=True)[1])
    np.testing.assert_array_equal(layer(query, value)[1], made(kind)(query, value)[1])
    assert np.abs(noisy - numpy_of(layer(query, value)[1])).max() > 0.01
    again = made(kind, sigmoid_noise=1.0, seed=1)
    np.testing.assert_array_equal(numpy_of(again(query, value, training=True)[1]), noisy)
    assert not np.array_equal(numpy_of(again(query, value, training=True)[1]), noisy)


@both
def test_sigmoid_noise_is_normal_and_added_before_the_sigmoid(kind):
    layer = kind(sigmoid_noise=0.5, seed=1)
    query, value = np.zeros((50, 20, 4), "float32"), np.zeros((50, 10, 6), "float32")
    layer.build(query.shape, value.shape)
    noise = numpy_of(layer.draw_noise(20, ops.convert_to_tensor(value), training=True))
    assert noise.shape == (50, 20, 10)
    # Three standard deviations of the mean and of the standard deviation of 10,000 samples.
    assert abs(noise.mean()) < 3 * 0.5 / 100
    assert abs(noise.std() - 0.5) < 3 * 0.5 / 2**0.5 / 100
    projected = layer.project(ops.convert_to_tensor(value))
    state = ops.ones((50, 20, 10)) * np.eye(10, dtype="float32")[0]
    weights = layer.attend(ops.convert_to_tensor(query), **projected, state=state, noise=noise)[1]
    # Scores are 0, so position 0 is chosen with the sigmoid of the noise as probability.
    np.testing.assert_allclose(numpy_of(weights)[..., 0], 1 / (1 + np.exp(-noise[..., 0])), 1e-5)


@both
def test_recursive_mode_gives_equal_weights_and_hard_mode_gives_0_or_1(kind):
    trained = made(kind)
    query, value = arrays()
    for mode in ("recursive", "hard"):
        other = kind(mode=mode)
        other.build((None, None, 4), (None, None, 6))
        other.set_weights(trained.get_weights())
        got, expected = numpy_of(other(query, value)[1]), numpy_of(trained(query, value)[1])
        if mode == "recursive":
            np.testing.assert_allclose(got, expected, atol=1e-6)
        else:
            assert set(np.unique(got)) == {0, 1}


class MaskOf(keras.layers.Layer):
    """Returns the mask that Keras attaches to a tensor."""

    def call(self, inputs, mask=None):
        return ops.cast(mask, "float32")

    def compute_mask(self, inputs, mask=None):
        return None


@both
def test_context_and_weights_carry_the_query_mask(kind):
    embedding = keras.layers.Embedding(10, 6, mask_zero=True)
    ids = np.array([[5, 6, 0], [7, 0, 0]])
    for output in kind()(embedding(ids), embedding(np.array([[3, 4], [5, 0]]))):
        np.testing.assert_array_equal(numpy_of(MaskOf()(output)), ids != 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"sigmoid_noise": -1.0}, "0 or more, received -1.0"),
        ({"mode": "soft"}, '"parallel", "recursive" or "hard", received .soft'),
    ],
)
@both
def test_invalid_monotonic_attention_arguments_raise_value_error(kind, arguments, words):
    with pytest.raises(ValueError, match=words):
        kind(**arguments)


def test_zero_units_of_bahdanau_monotonic_attention_raise_value_error():
    with pytest.raises(ValueError, match="positive integer, received 0"):
        BahdanauMonotonicAttention(0)
