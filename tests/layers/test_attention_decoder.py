"""Each cell with each attention over a whole target, against a numpy loop."""

import keras
import numpy as np
import pytest
import reference_attention
import reference_recurrent as reference
from differentiation import quick
from keras import ops

from keras_seq import layers

LENGTHS = (5, 3, 1)
MASK = np.arange(5)[None] < np.array(LENGTHS)[:, None]
INPUTS, VALUES, UNITS, STEPS = 3, 6, 4, 4

CELLS = {
    "simple": lambda: keras.layers.SimpleRNNCell(UNITS, name="simple"),
    "gru": lambda: keras.layers.GRUCell(UNITS, name="gru"),
    "lstm": lambda: keras.layers.LSTMCell(UNITS, name="lstm"),
    "stacked": lambda: keras.layers.StackedRNNCells(
        [keras.layers.GRUCell(5, name="gru"), keras.layers.LSTMCell(UNITS, name="lstm")],
        name="stack",
    ),
}
ATTENTIONS = {
    "bahdanau": layers.BahdanauAttention,
    "luong": lambda units, **arguments: layers.LuongAttention("general", **arguments),
    "location": lambda units, **arguments: layers.LocationSensitiveAttention(
        units, 2, 3, **arguments
    ),
    "bahdanau-monotonic": layers.BahdanauMonotonicAttention,
    "luong-monotonic": lambda units, **arguments: layers.LuongMonotonicAttention(**arguments),
}
# Input feeding and query. Each form is used for the same number of pairs below.
FORMS = [(True, "current"), (False, "current"), (True, "previous"), (False, "previous")]
PAIRS = [
    (cell, attention, *FORMS[(i + j) % 4])
    for i, cell in enumerate(CELLS)
    for j, attention in enumerate(ATTENTIONS)
]
with_state = pytest.mark.parametrize(
    "attention", ["location", "bahdanau-monotonic", "luong-monotonic"]
)
every_form = pytest.mark.parametrize(("input_feeding", "query"), FORMS)


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def arrays(steps=STEPS):
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(3, steps, INPUTS)).astype("float32")
    value = generator.normal(size=(3, 5, VALUES)).astype("float32")
    return inputs, value


def made(cell, attention, input_feeding=True, query="current", **arguments):
    """A built decoder with random weights."""
    attention = ATTENTIONS[attention](8, name="attention", **arguments)
    decoder = layers.AttentionDecoder(
        layers.AttentionCell(
            CELLS[cell](), attention, input_feeding=input_feeding, query=query, name="cell"
        )
    )
    decoder.build((None, None, INPUTS), (None, None, VALUES))
    reference.randomize(decoder)
    return decoder


def whole(decoder, inputs, value, **arguments):
    run = quick(
        lambda inputs, value: decoder(
            inputs, value, value_mask=MASK, return_weights=True, **arguments
        )
    )
    return run(ops.convert_to_tensor(inputs), ops.convert_to_tensor(value))


def advance(cell, named):
    """One step of a cell: `(x, states)` -> `(hidden, states)`."""
    if cell != "stacked":
        return lambda x, states: reference.CELLS[cell][0](x, states, named, cell)

    def upper(x, states):
        x, lower = reference.gru(x, states[2:], named, "gru")
        hidden, own = reference.lstm(x, states[:2], named, "lstm")
        return hidden, own + lower

    return upper


def attend(attention, named):
    """Attention of one row: `(query, value)` -> weights."""
    if attention in ("bahdanau", "luong"):
        score = getattr(reference, attention)
        return lambda query, value: score(query, value, named, "attention")
    if attention == "location":
        return reference_attention.location_attend(named, "attention")
    energies = {
        "bahdanau-monotonic": reference_attention.additive_energies,
        "luong-monotonic": reference_attention.general_energies,
    }
    return reference_attention.monotonic_attend(energies[attention](named, "attention"))


@pytest.mark.parametrize(("cell", "attention", "input_feeding", "query"), PAIRS)
def test_attention_decoder_equals_a_numpy_loop(cell, attention, input_feeding, query):
    decoder = made(cell, attention, input_feeding, query)
    inputs, value = arrays()
    named = {
        # Layers built outside a model have shorter paths than layers inside one.
        path.split("cell/")[-1].removeprefix("stack/"): array
        for path, array in reference.named_arrays(decoder).items()
    }
    sizes = {"lstm": [UNITS] * 2, "stacked": [UNITS, UNITS, 5]}.get(cell, [UNITS])
    outputs, _, weights = whole(decoder, inputs, value)
    for row, length in enumerate(LENGTHS):
        expected_outputs, expected_weights = reference.attention_decoder(
            inputs[row].astype("float64"),
            value[row, :length].astype("float64"),
            [np.zeros(size) for size in sizes],
            advance(cell, named),
            attend(attention, named),
            named["kernel"],
            input_feeding,
            query,
        )
        np.testing.assert_allclose(numpy_of(outputs)[row], expected_outputs, atol=1e-5)
        np.testing.assert_allclose(numpy_of(weights)[row, :, :length], expected_weights, atol=1e-5)
        assert (numpy_of(weights)[row, :, length:] == 0).all()


@with_state
@every_form
def test_decoding_in_two_pieces_equals_one_pass(attention, input_feeding, query):
    decoder = made("gru", attention, input_feeding, query)
    inputs, value = arrays()
    outputs, states, _ = whole(decoder, inputs, value)
    first, between, _ = whole(decoder, inputs[:, :2], value)
    second, last, _ = whole(decoder, inputs[:, 2:], value, states=between)
    pieces = np.concatenate([numpy_of(first), numpy_of(second)], axis=1)
    np.testing.assert_allclose(pieces, numpy_of(outputs), atol=1e-6)
    keras.tree.map_structure(
        lambda left, right: np.testing.assert_allclose(numpy_of(left), numpy_of(right), atol=1e-6),
        states,
        last,
    )


@with_state
@pytest.mark.parametrize("query", ["current", "previous"])
def test_hypotheses_stepped_together_equal_each_stepped_alone(attention, query):
    cell = made("lstm", attention, query=query).cell
    inputs, value = arrays(steps=2)
    memory = cell.attention.project(ops.convert_to_tensor(value), MASK)
    generator = np.random.default_rng(1)
    states = keras.tree.map_structure(
        lambda state: ops.convert_to_tensor(
            generator.uniform(size=(3, 2, state.shape[-1])).astype("float32")
        ),
        cell.get_initial_state(3, ops.convert_to_tensor(value)),
    )

    def step(inputs, states):
        return cell(ops.convert_to_tensor(inputs), states, **memory, value_mask=MASK)

    together = step(inputs, states)
    for k in range(2):
        alone = step(inputs[:, k], keras.tree.map_structure(lambda state, k=k: state[:, k], states))
        keras.tree.map_structure(
            lambda left, right, k=k: np.testing.assert_allclose(
                numpy_of(left)[:, k], numpy_of(right), atol=1e-6
            ),
            together,
            alone,
        )


@every_form
def test_sigmoid_noise_reaches_every_step_in_training(input_feeding, query):
    decoder = made("gru", "luong-monotonic", input_feeding, query, sigmoid_noise=1.0, seed=1)
    inputs, value = arrays()
    plain = numpy_of(whole(decoder, inputs, value)[2])
    noisy = numpy_of(whole(decoder, inputs, value, training=True)[2])
    assert (noisy[~np.broadcast_to(MASK[:, None], noisy.shape)] == 0).all()
    assert np.abs(noisy - plain).max(axis=(0, 2)).min() > 1e-3
    np.testing.assert_array_equal(numpy_of(whole(decoder, inputs, value)[2]), plain)


@pytest.mark.parametrize("input_feeding", [True, False])
def test_location_sensitive_dropout_reaches_every_step_in_training(input_feeding):
    decoder = made("gru", "location", input_feeding, dropout=0.5, seed=1)
    inputs, value = arrays(steps=12)
    dropped = numpy_of(whole(decoder, inputs, value, training=True)[2])
    real = np.broadcast_to(MASK[:, None], dropped.shape)
    assert 0.3 < (dropped[real] == 0).mean() < 0.7
    np.testing.assert_allclose(numpy_of(whole(decoder, inputs, value)[2]).sum(-1), 1, atol=1e-6)


@pytest.mark.parametrize("input_feeding", [True, False])
def test_zoneout_in_the_decoder_cell_acts_in_training_only(input_feeding):
    # The probability that 12 steps of 3 rows keep all 4 units is 2^-144.
    cell = layers.ZoneoutCell(layers.LSTMCell(UNITS), [0.0, 0.5], seed=1)
    decoder = layers.AttentionDecoder(
        layers.AttentionCell(cell, layers.BahdanauAttention(8), input_feeding=input_feeding)
    )
    inputs, value = arrays(steps=12)
    decoder.build(inputs.shape, value.shape)
    plain = whole(decoder, inputs, value)
    dropped = whole(decoder, inputs, value, training=True)
    assert np.abs(numpy_of(dropped[0]) - numpy_of(plain[0])).max() > 1e-3
    np.testing.assert_array_equal(numpy_of(whole(decoder, inputs, value)[0]), plain[0])


@pytest.mark.parametrize("input_feeding", [True, False])
def test_decoder_over_a_residual_cell_stack_equals_single_steps(input_feeding):
    cells = keras.layers.StackedRNNCells(
        [layers.LSTMCell(UNITS), layers.ResidualCell(layers.GRUCell(UNITS))]
    )
    attention = layers.BahdanauMonotonicAttention(8)
    cell = layers.AttentionCell(cells, attention, input_feeding=input_feeding)
    decoder = layers.AttentionDecoder(cell)
    inputs, value = arrays()
    decoder.build(inputs.shape, value.shape)
    outputs = numpy_of(whole(decoder, inputs, value)[0])
    step = quick(lambda inputs, states: cell(inputs, states, value, value_mask=MASK))
    states = cell.get_initial_state(3, ops.convert_to_tensor(value))
    for t in range(STEPS):
        output, states, _ = step(ops.convert_to_tensor(inputs[:, t]), states)
        np.testing.assert_allclose(outputs[:, t], numpy_of(output), atol=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="JAX knows all sizes")
def test_graph_of_unknown_lengths_has_the_eager_gradients():
    import tensorflow as tf

    decoder = made("gru", "bahdanau-monotonic")
    inputs, value = map(tf.constant, arrays(steps=3))

    def gradients(inputs, value):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(decoder(inputs, value, training=True)[0] ** 2)
        return tape.gradient(loss, [weight.value for weight in decoder.trainable_weights])

    unknown = [tf.TensorSpec((None, None, size), tf.float32) for size in (INPUTS, VALUES)]
    graph = tf.function(gradients, input_signature=unknown)
    for got, expected in zip(graph(inputs, value), gradients(inputs, value), strict=True):
        assert np.abs(expected).max() > 1e-4
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
