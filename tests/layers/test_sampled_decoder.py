"""The decoder with samplers, against single steps of its cell in a Python loop."""

import keras
import numpy as np
import pytest
from differentiation import gradients
from keras import ops
from scipy import stats

from keras_seq import layers
from keras_seq.layers import (
    CategoricalSampler,
    GreedySampler,
    SampledDecoder,
    ScheduledEmbeddingSampler,
    ScheduledOutputSampler,
    TrainingSampler,
)

B, S, T, E, D, U, V = 3, 5, 4, 6, 4, 8, 11
START, END = 2, 3
MASK = np.arange(S)[None] < np.array([[5], [3], [1]])
TARGET = np.array([[2, 5, 6, 7], [2, 9, 0, 0], [2, 4, 8, 0]], "int32")
VALUE = np.random.default_rng(0).normal(size=(B, S, E)).astype("float32")


def parts():
    """Returns built layers with large weights, so that the most likely words differ."""
    keras.utils.set_random_seed(3)
    given = {
        "cell": layers.AttentionCell(keras.layers.GRUCell(U), layers.LuongAttention()),
        "embedding": keras.layers.Embedding(V, D),
        "output_layer": keras.layers.Dense(V),
    }
    SampledDecoder(sampler=TrainingSampler(), **given).build((None, None, E), (None, None))
    generator = np.random.default_rng(4)
    for part in given.values():
        for weight in part.weights:
            weight.assign(generator.normal(size=weight.shape))
    return given


def decoder(sampler, given=None, **arguments):
    return SampledDecoder(sampler=sampler, **(given or parts()), **arguments)


def numpy_of(tensors):
    return [np.asarray(ops.convert_to_numpy(tensor)) for tensor in tensors]


def one_by_one(given, steps, read):
    """Logits of single steps; `read(step, logits so far)` gives each step's inputs `(B, D)`."""
    cell = given["cell"]
    states, logits = cell.get_initial_state(batch_size=B), []
    for step in range(steps):
        hidden, states, _ = cell(read(step, logits), states, VALUE, value_mask=MASK)
        logits.append(given["output_layer"](hidden))
    return np.stack(numpy_of(logits), axis=1)


def vectors(given, ids):
    return ops.take(given["embedding"].embeddings, np.asarray(ids), axis=0)


@pytest.mark.parametrize(
    ("sampler", "training"),
    [
        (TrainingSampler(), True),
        (ScheduledEmbeddingSampler(0.0), True),
        (ScheduledEmbeddingSampler(1.0), False),
        (ScheduledOutputSampler(0.0), True),
    ],
)
def test_decoder_without_sampled_words_equals_teacher_forcing(sampler, training):
    given = parts()
    taught = decoder(sampler, given)
    logits, ids, lengths = numpy_of(taught(VALUE, TARGET, value_mask=MASK, training=training))
    expected = one_by_one(given, T, lambda step, _: vectors(given, TARGET[:, step]))
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5)
    if not isinstance(sampler, ScheduledEmbeddingSampler) or not training:
        np.testing.assert_array_equal(ids, np.where(TARGET > 0, expected.argmax(-1), 0))
    assert lengths.tolist() == [4, 2, 3]


def test_scheduled_words_are_read_at_the_next_step():
    given = parts()
    sampled = decoder(ScheduledEmbeddingSampler(1.0, seed=5), given)
    everywhere = np.maximum(TARGET, 1)
    logits, ids, _ = numpy_of(sampled(VALUE, everywhere, value_mask=MASK, training=True))

    def read(step, _):
        return vectors(given, ids[:, step - 1] if step else TARGET[:, 0])

    np.testing.assert_allclose(logits, one_by_one(given, T, read), rtol=0, atol=1e-5)
    assert (ids != logits.argmax(-1)).any()


def test_scheduled_sampling_replaces_the_configured_share_of_positions():
    given = parts()
    for weight in given["cell"].weights:
        # Small weights, so that rounding errors shrink from step to step.
        weight.assign(weight * 0.3)
    rows, steps, share = 50, 20, 0.25
    value = np.tile(VALUE[:1], (rows, 1, 1))
    target = np.tile(np.array([[2, *[5] * (steps - 1)]], "int32"), (rows, 1))
    sampled = decoder(ScheduledEmbeddingSampler(share, seed=5), given)
    logits, ids, _ = numpy_of(sampled(value, target, training=True))
    cell, states = given["cell"], given["cell"].get_initial_state(batch_size=rows)
    chosen = []
    for step in range(steps):
        read = np.stack([target[:, step], ids[:, step - 1] if step else target[:, 0]])
        errors, found = [], []
        for words in read:
            hidden, after, _ = cell(vectors(given, words), states, value)
            scores = numpy_of([given["output_layer"](hidden)])[0]
            errors.append(np.abs(scores - logits[:, step]).max(axis=-1))
            found.append(numpy_of(keras.tree.flatten(after)))
        own = errors[1] < errors[0]
        assert np.minimum(*errors).max() < 1e-4
        chosen.append(own[read[0] != read[1]])
        picked = [np.where(own[:, None], mine, true) for true, mine in zip(*found, strict=True)]
        states = keras.tree.pack_sequence_as(states, [ops.array(state) for state in picked])
    chosen = np.concatenate(chosen)
    assert stats.binomtest(int(chosen.sum()), len(chosen), share).pvalue > 0.01


def test_mean_embeddings_are_read_at_the_next_step():
    given = parts()
    sampled = decoder(ScheduledOutputSampler(1.0), given)
    logits, _, _ = numpy_of(sampled(VALUE, TARGET, value_mask=MASK, training=True))
    table = np.asarray(ops.convert_to_numpy(given["embedding"].embeddings))

    def read(step, so_far):
        if not step:
            return vectors(given, TARGET[:, 0])
        scores = np.exp(numpy_of([so_far[-1]])[0].astype("float64"))
        return ops.array(scores / scores.sum(-1, keepdims=True) @ table, dtype="float32")

    np.testing.assert_allclose(logits, one_by_one(given, T, read), rtol=0, atol=1e-4)


def test_output_vectors_are_fed_back_without_an_embedding():
    given = parts() | {"embedding": None, "output_layer": keras.layers.Dense(D)}
    target = np.random.default_rng(1).normal(size=(B, T, D)).astype("float32")
    cell = layers.AttentionCell(keras.layers.GRUCell(U), layers.LuongAttention())
    sampled = decoder(ScheduledOutputSampler(1.0), given | {"cell": cell})
    outputs, _, lengths = numpy_of(sampled(VALUE, target, value_mask=MASK, training=True))
    expected = one_by_one(
        given | {"cell": cell}, T, lambda step, so_far: so_far[-1] if step else target[:, 0]
    )
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-5)
    assert lengths.tolist() == [T] * B


def test_assigned_probability_of_0_gives_teacher_forcing():
    given = parts()
    sampled = decoder(ScheduledEmbeddingSampler(1.0), given)
    sampled(VALUE, TARGET)
    assert not sampled.probability.trainable
    sampled.probability.assign(0.0)
    logits = sampled(VALUE, TARGET, value_mask=MASK, training=True)[0]
    forced = decoder(TrainingSampler(), given)(VALUE, TARGET, value_mask=MASK)[0]
    np.testing.assert_allclose(*numpy_of([logits, forced]), rtol=0, atol=1e-5)


@pytest.mark.parametrize("sampler", [ScheduledEmbeddingSampler, ScheduledOutputSampler])
def test_scheduled_sampler_gradients_at_probability_0_equal_teacher_forcing(sampler):
    given = parts()

    def slopes(sampler):
        sampled = decoder(sampler, given)
        sampled(VALUE, TARGET)

        def loss(value):
            return ops.sum(sampled(value, TARGET, value_mask=MASK, training=True)[0] ** 2)

        by_value, by_weight = gradients(loss, [VALUE], sampled.trainable_variables)
        return by_value + by_weight

    for left, right in zip(slopes(sampler(0.0)), slopes(TrainingSampler()), strict=True):
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-5 * np.abs(right).max())


def greedy_by_hand(given, steps):
    """Ids and lengths, by single steps."""
    ids = np.zeros((B, steps), "int32")
    read = np.full(B, START)
    logits, states, live = [], given["cell"].get_initial_state(batch_size=B), np.ones(B, bool)
    for step in range(steps):
        inputs = vectors(given, read)
        hidden, states, _ = given["cell"](inputs, states, VALUE, value_mask=MASK)
        scores = numpy_of([given["output_layer"](hidden)])[0]
        read = np.where(live, scores.argmax(-1), 0)
        logits.append(np.where(live[:, None], scores, 0))
        ids[:, step] = read
        live = live & (read != END)
    return np.stack(logits, axis=1), ids


def test_greedy_decoding_writes_until_the_end_token():
    given = parts()
    # The end token is likely enough to end one row early, but not all rows.
    given["output_layer"].bias.assign(np.eye(V)[END] * 1.5)
    expected, words = greedy_by_hand(given, 7)
    ends = [(row == END).any() for row in words]
    assert any(ends) and not all(ends)
    write = decoder(GreedySampler(START, END), given, max_steps=7)
    logits, ids, lengths = numpy_of(write(VALUE, value_mask=MASK))
    np.testing.assert_array_equal(ids, words)
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-5)
    assert lengths.tolist() == [
        int(np.argmax(row == END)) + 1 if END in row else 7 for row in words
    ]


def test_row_that_ends_at_once_is_followed_by_padding():
    given = parts()
    given["output_layer"].bias.assign(np.eye(V)[END] * 1e3)
    logits, ids, lengths = numpy_of(decoder(GreedySampler(START, END), given, max_steps=6)(VALUE))
    assert ids.tolist() == [[END, 0, 0, 0, 0, 0]] * B and lengths.tolist() == [1] * B
    assert not logits[:, 1:].any()


def test_categorical_samples_repeat_with_the_seed_and_change_between_calls():
    given = parts()
    drawn = [
        decoder(CategoricalSampler(START, END, seed=seed), given, max_steps=20)
        for seed in (1, 1, 2)
    ]
    first, again, other = (numpy_of([write(VALUE)[1]])[0] for write in drawn)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert (first != numpy_of([drawn[0](VALUE)[1]])[0]).any()


def test_categorical_samples_near_zero_temperature_equal_greedy_decoding():
    given = parts()
    drawn = decoder(CategoricalSampler(START, END, temperature=1e-4), given, max_steps=9)
    greedy = decoder(GreedySampler(START, END), given, max_steps=9)
    np.testing.assert_array_equal(*numpy_of([drawn(VALUE)[1], greedy(VALUE)[1]]))


@pytest.mark.parametrize(
    ("policy", "sampler"),
    [
        ("mixed_float16", ScheduledEmbeddingSampler(0.5)),
        ("mixed_bfloat16", ScheduledOutputSampler(0.5)),
        ("mixed_bfloat16", GreedySampler(START, END)),
    ],
)
def test_half_precision_decoder_gives_finite_float32_logits_and_int32_ids(policy, sampler):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        write = isinstance(sampler, GreedySampler)
        made = decoder(sampler, parts(), **({"max_steps": 3} if write else {}))
        arguments = {} if write else {"target": TARGET, "training": True}
        logits, ids, _ = numpy_of(made(VALUE, **arguments))
    finally:
        keras.config.set_dtype_policy(before)
    assert str(logits.dtype) == "float32" and str(ids.dtype) == "int32"
    assert np.isfinite(logits).all()


def test_compiled_fit_with_scheduled_sampling_updates_the_weights():
    given = parts()
    source, target = keras.Input((None, E)), keras.Input((None,), dtype="int32")
    logits, _, _ = decoder(ScheduledEmbeddingSampler(0.5, seed=1), given)(source, target)
    model = keras.Model([source, target], logits)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before = numpy_of([given["output_layer"].kernel])[0]
    model.fit([VALUE, TARGET], TARGET, epochs=2, verbose=0)
    after = numpy_of([given["output_layer"].kernel])[0]
    assert np.isfinite(after).all() and (before != after).any()


@pytest.mark.parametrize("sampler", [GreedySampler(START, END), CategoricalSampler(START, END)])
def test_saved_sampled_decoder_loads_with_its_sampler(sampler, tmp_path):
    value = keras.Input((None, E), name="value")
    model = keras.Model(value, decoder(sampler, max_steps=6)(value))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.layers[-1].sampler == sampler
    if isinstance(sampler, GreedySampler):
        outputs = (model.predict(VALUE, verbose=0), loaded.predict(VALUE, verbose=0))
        for left, right in zip(*outputs, strict=True):
            np.testing.assert_allclose(left, right, rtol=0, atol=1e-6)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="exports run on TensorFlow")
@pytest.mark.parametrize("sampler", [GreedySampler(START, END), CategoricalSampler(START, END)])
def test_exported_sampled_decoder_runs_in_a_tensorflow_session(sampler, tmp_path):
    import tensorflow as tf

    write = decoder(sampler, max_steps=6)
    expected = numpy_of(write(VALUE))
    module = tf.Module()
    module.variables_of_layer = [variable.value for variable in write.variables]
    if isinstance(sampler, CategoricalSampler):
        module.state_of_draws = write.seed_generator.state.value
    module.serve = tf.function(
        lambda value: dict(zip("abc", write(value), strict=True)),
        input_signature=[tf.TensorSpec([None, None, E], tf.float32)],
    )
    tf.saved_model.save(module, str(tmp_path), signatures={"serving_default": module.serve})
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(tmp_path))
        assert not [op.name for op in session.graph.get_operations() if op.type.startswith("Xla")]
        served = loaded.signature_def["serving_default"]
        names = [served.outputs[name].name for name in "abc"]
        fed = {served.inputs["value"].name: VALUE}
        outputs, again = session.run(names, fed), session.run(names, fed)
    assert [output.shape for output in outputs] == [(B, 6, V), (B, 6), (B,)]
    if isinstance(sampler, GreedySampler):
        for got, before in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(got, before, rtol=0, atol=1e-5)
    else:
        assert (outputs[1] != again[1]).any()


def refused(match, sampler, **changes):
    with pytest.raises(ValueError, match=match):
        decoder(sampler, parts() | changes)


def test_invalid_sampled_decoder_arguments_raise_value_error():
    refused("`cell` must be an `AttentionCell`, received", TrainingSampler(), cell="gru")
    refused("`sampler` must be a TrainingSampler.*received 'greedy'", "greedy")
    refused("produces ids: pass an `embedding`", GreedySampler(2, 3), embedding=None, max_steps=3)
    refused("produces ids", ScheduledEmbeddingSampler(0.5), embedding=None)
    refused("`max_steps` must be a positive integer, received None", GreedySampler(2, 3))
    refused("omit `max_steps`, received 5", TrainingSampler(), max_steps=5)


def test_invalid_sampled_decoder_calls_raise_value_error():
    with pytest.raises(ValueError, match="follows a target.*received none"):
        decoder(TrainingSampler())(VALUE)
    with pytest.raises(ValueError, match="generates without a target"):
        decoder(GreedySampler(2, 3), max_steps=3)(VALUE, TARGET)
    with pytest.raises(ValueError, match=r"must be ids \(B, T\), received shape \(3, 4, 1\)"):
        decoder(TrainingSampler())(VALUE, TARGET[..., None])
    vectors = decoder(TrainingSampler(), parts() | {"embedding": None})
    with pytest.raises(ValueError, match=r"vectors \(B, T, D\).*without an `embedding`.*\(3, 4\)"):
        vectors(VALUE, TARGET)
    fed = decoder(ScheduledOutputSampler(0.5), parts() | {"embedding": None})
    with pytest.raises(ValueError, match="width 11 must be as wide.*received 4"):
        fed(VALUE, np.zeros((B, T, D), "float32"))
