"""Self-attention against numpy, against Keras, and its step form under reordered hypotheses."""

import keras
import numpy as np
import pytest
import reference_transformer as reference
from differentiation import gradients, quick
from keras import ops

from keras_seq.layers import (
    LinearBiases,
    MultiHeadSelfAttention,
    RelativePosition,
    RotaryPosition,
    SinusoidalPosition,
    beam_cache_mask,
    update_ancestors,
)
from keras_seq.layers.attention.beam_cache import compact_cache
from keras_seq.layers.attention.multi_head_self_attention import cache_indices, write_step

HEADS, FEATURES, STEPS = 2, 6, 5
SIZE = FEATURES // HEADS
LENGTHS = (5, 3, 1)
MASK = np.arange(STEPS)[None] < np.array(LENGTHS)[:, None]
POSITIONS = {
    "rotary": lambda: {"position": RotaryPosition(), "key_size": 4, "value_size": 2},
    "relative": lambda: {"position": RelativePosition(2), "value_size": 2, "window": 4},
    "biases": lambda: {"position": LinearBiases()},
}


def inputs(seed=0, steps=STEPS, rows=3):
    return np.random.default_rng(seed).normal(size=(rows, steps, FEATURES)).astype("float32")


def made(**arguments):
    layer = MultiHeadSelfAttention(HEADS, name="self", **arguments)
    layer.build((None, None, FEATURES))
    reference.randomize(layer)
    return layer


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_equals_numpy(causal):
    layer, x = made(causal=causal), inputs()
    outputs, weights = layer(x, mask=MASK, return_weights=True)
    arrays = reference.named_arrays(layer, "self/")
    for row, length in enumerate(LENGTHS):
        expected, expected_weights = reference.self_attention(
            x[row, :length].astype("float64"),
            {f"x/{name}": array for name, array in arrays.items()},
            "x",
            HEADS,
            causal,
        )
        np.testing.assert_allclose(outputs[row, :length], expected, atol=1e-5)
        np.testing.assert_allclose(weights[row, :, :length, :length], expected_weights, atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("keys", "values", "window"), [(None, None, None), (5, None, None), (2, 7, 2)]
)
def test_self_attention_equals_keras_with_the_same_weights(causal, masked, keys, values, window):
    layer = made(causal=causal, key_size=keys, value_size=values, window=window)
    x = inputs()
    keys = keys or SIZE
    values = values or keys
    theirs = keras.layers.MultiHeadAttention(
        HEADS, keys, values, sliding_window=window, flash_attention=False
    )
    theirs.build((None, None, FEATURES), (None, None, FEATURES))
    ends = [HEADS * keys, 2 * HEADS * keys]
    kernels = np.split(numpy_of(layer.qkv_projection.kernel), ends, axis=1)
    biases = np.split(numpy_of(layer.qkv_projection.bias), ends)
    theirs.set_weights(
        [
            *(
                array
                for kernel, bias in zip(kernels, biases, strict=True)
                for array in (
                    kernel.reshape(FEATURES, HEADS, -1),
                    bias.reshape(HEADS, -1),
                )
            ),
            numpy_of(layer.output_projection.kernel).reshape(HEADS, values, FEATURES),
            numpy_of(layer.output_projection.bias),
        ]
    )
    mask = MASK if masked else np.ones_like(MASK)
    got, got_weights = layer(x, mask=mask if masked else None, return_weights=True)
    expected, expected_weights = theirs(
        x,
        x,
        attention_mask=mask[:, None, :],
        use_causal_mask=causal,
        return_attention_scores=True,
    )
    np.testing.assert_allclose(numpy_of(got)[mask], numpy_of(expected)[mask], atol=1e-5)
    np.testing.assert_allclose(
        np.swapaxes(got_weights, 1, 2)[mask], np.swapaxes(expected_weights, 1, 2)[mask], atol=1e-6
    )
    # Without the weights, the layer computes the same output differently.
    alone = numpy_of(layer(x, mask=mask if masked else None))
    np.testing.assert_allclose(alone[mask], numpy_of(expected)[mask], atol=1e-5)


def loops(layer, x, change_score, change_value):
    """Computes the attention of one row with loops over pairs of steps."""
    keys, values = layer.head_sizes
    ends = [HEADS * keys, 2 * HEADS * keys]
    projected = x @ numpy_of(layer.qkv_projection.kernel) + numpy_of(layer.qkv_projection.bias)
    query, key, value = np.split(projected, ends, axis=-1)
    heads = np.zeros((len(x), HEADS, values))
    for head in range(HEADS):
        q, k = (part[:, head * keys : (head + 1) * keys] for part in (query, key))
        v = value[:, head * values : (head + 1) * values]
        for t in range(len(x)):
            scores = [change_score(head, q, k, t, s) / keys**0.5 for s in range(t + 1)]
            weights = reference.softmax(np.array(scores))
            heads[t, head] = sum(weights[s] * change_value(v, t, s) for s in range(t + 1))
    merged = heads.reshape(len(x), -1)
    return merged @ numpy_of(layer.output_projection.kernel) + numpy_of(
        layer.output_projection.bias
    )


def pair_vector(table, t, s):
    return table[max(-2, min(2, s - t)) + 2]


def test_self_attention_with_relative_positions_equals_loops():
    layer = made(causal=True, value_size=2, position=RelativePosition(2))
    tables = [numpy_of(weight) for weight in layer.position.weights]
    x = inputs(rows=1)
    expected = loops(
        layer,
        x[0].astype("float64"),
        lambda head, q, k, t, s: q[t] @ (k[s] + pair_vector(tables[0], t, s)),
        lambda v, t, s: v[s] + pair_vector(tables[1], t, s),
    )
    np.testing.assert_allclose(layer(x)[0], expected, atol=1e-5)


def test_self_attention_with_linear_biases_equals_loops():
    layer, x = made(causal=True, position=LinearBiases()), inputs(rows=1)
    # The slopes of two heads are 2^-4 and 2^-8. The biases are not scaled.
    expected = loops(
        layer,
        x[0].astype("float64"),
        lambda head, q, k, t, s: q[t] @ k[s] - SIZE**0.5 * (t - s) * (2**-4, 2**-8)[head],
        lambda v, t, s: v[s],
    )
    np.testing.assert_allclose(layer(x)[0], expected, atol=1e-5)


def test_self_attention_with_rotary_positions_equals_loops():
    layer, x = made(causal=True, key_size=4, position=RotaryPosition(100.0)), inputs(rows=1)

    def turned(vector, at):
        complex_numbers = vector[0::2] + 1j * vector[1::2]
        return complex_numbers * np.exp(1j * at * np.array([1, 0.1]))

    # The real part of a product with the conjugate is the product of the vectors.
    expected = loops(
        layer,
        x[0].astype("float64"),
        lambda head, q, k, t, s: (turned(q[t], t) @ turned(k[s], s).conj()).real,
        lambda v, t, s: v[s],
    )
    np.testing.assert_allclose(layer(x)[0], expected, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("position", POSITIONS)
def test_shifting_a_sequence_leaves_positioned_attention_unchanged(position, causal):
    """Two masked steps in front shift a sequence without changing its output."""
    layer, x = made(causal=causal, **POSITIONS[position]()), inputs()
    moved = np.concatenate([np.full((3, 2, FEATURES), np.nan, "float32"), x], axis=1)
    mask = np.arange(STEPS + 2)[None].repeat(3, axis=0) >= 2
    expected = numpy_of(layer(x))
    np.testing.assert_allclose(layer(moved, mask=mask)[:, 2:], expected, atol=1e-5)
    # The same distances in a different order are a different sequence.
    if not causal:
        assert abs(numpy_of(layer(x[:, ::-1]))[:, ::-1] - expected).max() > 1e-3 or (
            position == "biases"
        )


def test_changed_step_reaches_only_queries_inside_the_window():
    layer, x = made(causal=True, window=2), inputs()
    before = numpy_of(layer(x))
    changed = x.copy()
    changed[:, 1] += 1
    reached = abs(numpy_of(layer(changed)) - before).max(axis=(0, 2)) > 1e-5
    assert reached.tolist() == [False, True, True, False, False]


def test_a_step_whose_window_is_padding_attends_to_nothing():
    mask = np.array([[True, False, False, False, True]])
    outputs, weights = made(window=2)(inputs(rows=1), mask=mask, return_weights=True)
    sums = numpy_of(weights).sum(axis=-1)
    np.testing.assert_allclose(sums, np.broadcast_to([1, 1, 0, 1, 1], sums.shape), atol=1e-6)
    assert np.isfinite(numpy_of(outputs)).all()


def test_weights_are_exactly_0_on_padding_and_on_the_future():
    weights = numpy_of(made(causal=True)(10 * inputs(), mask=MASK, return_weights=True)[1])
    seen = np.tril(np.ones((STEPS, STEPS), bool))[None] & MASK[:, None, :]
    assert (weights[np.broadcast_to(~seen[:, None], weights.shape)] == 0).all()
    real = np.broadcast_to(MASK[:, None], weights.shape[:3])
    np.testing.assert_allclose(weights.sum(axis=-1)[real], 1, atol=1e-6)


def test_later_steps_do_not_change_earlier_causal_outputs():
    layer, x = made(causal=True), inputs()
    before = numpy_of(layer(x))
    for step in range(1, STEPS):
        changed = x.copy()
        changed[:, step:] = 9
        after = numpy_of(layer(changed))
        np.testing.assert_allclose(after[:, :step], before[:, :step], atol=1e-6)
        assert (abs(after[:, step] - before[:, step]) > 1e-3).any()


def test_padding_contents_change_neither_outputs_nor_gradients():
    layer, x = made(), inputs()
    spoiled = np.where(MASK[..., None], x, np.nan).astype("float32")

    def total(x):
        outputs = layer(x, mask=MASK)
        return ops.sum(ops.where(MASK[..., None], outputs, 0.0) ** 2)

    np.testing.assert_allclose(
        numpy_of(layer(spoiled, mask=MASK))[MASK],
        numpy_of(layer(x, mask=MASK))[MASK],
        atol=1e-6,
    )
    by_input, by_weight = gradients(total, [x], layer.trainable_weights)
    by_spoiled, by_weight_of_spoiled = gradients(total, [spoiled], layer.trainable_weights)
    assert any(gradient.any() for gradient in by_weight)
    for left, right in zip(by_spoiled + by_weight_of_spoiled, by_input + by_weight, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-5)
    assert (by_spoiled[0][~MASK] == 0).all()


@pytest.mark.parametrize("causal", [False, True])
def test_neither_batch_mates_nor_more_padding_change_a_row(causal):
    layer, x = made(causal=causal), inputs()
    together = numpy_of(layer(x, mask=MASK))
    alone = numpy_of(layer(x[1:2, :3]))
    np.testing.assert_allclose(together[1:2, :3], alone, atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_fully_masked_row_attends_to_nothing(causal):
    layer = made(causal=causal)
    mask = MASK.copy()
    mask[1] = False
    outputs, weights = layer(
        np.full((3, STEPS, FEATURES), np.nan, "float32"), mask=mask, return_weights=True
    )
    assert (numpy_of(weights)[1] == 0).all()
    # A context of 0, then the output projection.
    np.testing.assert_array_equal(
        outputs[1], np.broadcast_to(layer.output_projection.bias, (STEPS, FEATURES))
    )


def test_a_causal_step_whose_past_is_padding_attends_to_nothing():
    mask = np.array([[False, False, True, True, True]])
    x = inputs(rows=1)
    layer = made(causal=True)
    outputs, weights = layer(x, mask=mask, return_weights=True)
    assert (numpy_of(weights)[:, :, :2] == 0).all()
    np.testing.assert_allclose(outputs[:, 2:], layer(x[:, 2:]), atol=1e-6)


def test_self_attention_takes_its_mask_from_the_embedding_and_passes_it_on():
    ids = np.array([[4, 5, 6, 0, 0]] * 3)
    embedding = keras.layers.Embedding(9, FEATURES, mask_zero=True)
    layer = made()
    embedded = numpy_of(embedding(ids))
    expected = layer(embedded, mask=ids != 0)
    np.testing.assert_allclose(layer(embedding(ids)), expected, atol=1e-6)
    # Global pooling averages over the steps of the mask that reaches it.
    pooled = keras.layers.GlobalAveragePooling1D()(layer(embedding(ids)))
    np.testing.assert_allclose(pooled, numpy_of(expected)[:, :3].mean(axis=1), atol=1e-6)
    source = keras.Input((None,), dtype="int32")
    model = keras.Model(source, layer(embedding(source)))
    np.testing.assert_allclose(model(ids), expected, atol=1e-6)


def test_dropout_drops_weights_in_training_only_and_repeats_with_its_seed():
    # With equal scores and one-hot values, the output is the attention weights after dropout.
    steps = 40
    layer = MultiHeadSelfAttention(1, dropout=0.25, seed=3)
    layer.build((None, None, steps))
    unit = np.eye(steps, dtype="float32")
    layer.set_weights(
        [
            np.concatenate([0 * unit, 0 * unit, unit], axis=1),
            np.zeros(3 * steps),
            unit,
            np.zeros(steps),
        ]
    )
    x = np.stack([unit] * 5)
    np.testing.assert_allclose(layer(x), np.full(x.shape, 1 / steps), atol=1e-6)
    dropped = numpy_of(layer(x, training=True)) * steps
    kept = dropped > 0
    # Of 8,000 weights; five standard deviations are 0.025.
    assert abs(kept.mean() - 0.75) < 0.025
    np.testing.assert_allclose(dropped[kept], 1 / 0.75, rtol=1e-5)
    again = MultiHeadSelfAttention(1, dropout=0.25, seed=3)
    again.build((None, None, steps))
    again.set_weights(layer.get_weights()[:4])
    np.testing.assert_array_equal(numpy_of(again(x, training=True)) * steps, dropped)


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("position", ["none", *POSITIONS])
def test_reordered_hypotheses_equal_a_full_pass_over_their_sequences(position, moves):
    """Runs single steps as a search does, and compares each hypothesis with one full pass.

    Where slots move, the cache has room for two steps at a time, and what is nobody's past goes.
    """
    rows, beam, steps = 2, 3, 6
    room = 2 if moves else steps
    layer = made(causal=True, **POSITIONS.get(position, dict)())
    generator = np.random.default_rng(1)
    cache = {
        name: ops.zeros((rows, HEADS, room, beam, size), dtype="float32")
        for name, size in zip(("key", "value"), layer.head_sizes, strict=True)
    }
    past = ops.zeros((rows, beam, room, beam), dtype="bool")
    place = ops.zeros((rows,), dtype="int32")
    # The inputs and outputs of each hypothesis, reordered by plain indexing.
    fed = np.zeros((rows, beam, steps, FEATURES), "float32")
    came = np.zeros_like(fed)

    @quick
    def run_step(inputs, position, past, place, cache):
        past = update_ancestors(past, place)
        return past, *layer.step(inputs, position, beam_cache_mask(past), cache, place)

    for step in range(steps):
        fed[:, :, step] = generator.normal(size=(rows, beam, FEATURES))
        if moves and step and not step % 2:
            past, place, cache = compact_cache(past, place, cache, 2)
        past, outputs, cache = run_step(fed[:, :, step], step, past, place, cache)
        place = place + 1
        came[:, :, step] = numpy_of(outputs)
        parents = np.arange(rows)[:, None], generator.integers(0, beam, (rows, beam))
        fed, came = fed[parents], came[parents]
        past = ops.convert_to_tensor(numpy_of(past)[parents])
    whole = numpy_of(layer(fed.reshape(rows * beam, steps, FEATURES)))
    np.testing.assert_allclose(came.reshape(whole.shape), whole, atol=1e-5)


def test_a_step_writes_its_own_slot_of_the_cache_and_no_other():
    generator = np.random.default_rng(2)
    cache = generator.normal(size=(2, 3, 4, 5, 6)).astype("float32")
    update = generator.normal(size=(2, 3, 5, 6)).astype("float32")
    expected = cache.copy()
    expected[:, :, 2] = update
    written = numpy_of(write_step(cache, cache_indices(2, 3, ops.array(2)), update))
    np.testing.assert_array_equal(written, expected)


@pytest.mark.parametrize("num_heads", [0, -1, 2.0, None])
def test_invalid_number_of_heads_raises_value_error(num_heads):
    with pytest.raises(ValueError, match=rf"`num_heads`.*positive integer.*{num_heads}"):
        MultiHeadSelfAttention(num_heads)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, float("nan")])
def test_invalid_dropout_rate_raises_value_error(dropout):
    with pytest.raises(ValueError, match=rf"`dropout`.*\[0, 1\).*{dropout}"):
        MultiHeadSelfAttention(2, dropout=dropout)


def test_features_not_divisible_by_the_heads_raise_value_error():
    with pytest.raises(ValueError, match=r"`num_heads` \(4\) must divide.*\(3, 5, 6\)"):
        MultiHeadSelfAttention(4)(inputs())


@pytest.mark.parametrize("argument", ["key_size", "value_size", "window"])
def test_invalid_head_sizes_and_window_raise_value_error(argument):
    with pytest.raises(ValueError, match=rf"`{argument}` must be None or a positive integer.*0"):
        MultiHeadSelfAttention(2, **{argument: 0})


@pytest.mark.parametrize("position", ["rotary", SinusoidalPosition()])
def test_position_not_meant_for_attention_raises_value_error(position):
    with pytest.raises(ValueError, match=r"`position` must be None, a `RotaryPosition`.*inputs"):
        MultiHeadSelfAttention(2, position=position)


def test_odd_head_size_with_rotary_position_raises_value_error():
    with pytest.raises(ValueError, match=r"even number.*received 3.*`key_size`"):
        MultiHeadSelfAttention(2, position=RotaryPosition()).build((None, None, 6))


@pytest.mark.parametrize(
    ("shape", "dtype", "words"),
    [
        ((3, 6), "float32", "batch, steps, features.*received.*expand_dims"),
        ((3, 5, 7), "float32", "6 features.*received 7"),
        ((3, 5, 6), "int32", "`inputs` must hold floats, received int32"),
    ],
)
def test_inputs_of_wrong_shape_or_dtype_raise_value_error(shape, dtype, words):
    with pytest.raises(ValueError, match=words):
        made()(np.zeros(shape, dtype))


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (np.ones((3, STEPS), "int32"), "`mask` must be bool.*received int32"),
        (np.ones((3, STEPS + 1), bool), r"`mask` must have.*\(3, 5\), received \(3, 6\)"),
        (np.ones((3, STEPS, STEPS), bool), r"`mask` must have.*received \(3, 5, 5\)"),
    ],
)
def test_mask_of_wrong_dtype_or_shape_raises_value_error(mask, words):
    with pytest.raises(ValueError, match=words):
        made()(inputs(), mask=mask)
