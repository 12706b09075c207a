"""Scheduled sampling: which tokens are replaced, and by what."""

import keras
import numpy as np
import pytest
from differentiation import quick
from keras import ops
from weekly import weekly_on_jax

from keras_seq.callbacks import FollowSchedule
from keras_seq.losses import SequenceCrossEntropy
from keras_seq.models import RecurrentSeq2Seq, Transformer
from keras_seq.settings import load_settings
from keras_seq.training import ScheduledSampling
from keras_seq.training.training_model import training_model

pytestmark = pytest.mark.jax

SOURCE = np.array([[5, 6, 7, 3], [7, 3, 0, 0]], np.int32)
TARGET = np.array([[2, 6, 4, 7, 9], [2, 6, 0, 0, 0]], np.int32)
INPUTS = {"source": SOURCE, "target": TARGET}


def transformer(dropout=0.0):
    return Transformer(20, 20, 1, 1, 8, 16, 2, dropout=dropout, seed=1)


def recurrent():
    sizes = {"embedding_units": 4, "encoder_units": 4, "decoder_units": 8, "attention_units": 8}
    return RecurrentSeq2Seq(20, 20, **sizes, dropout=0.0, seed=1)


def logits(model, inputs=INPUTS, **options):
    return ops.convert_to_numpy(quick(lambda inputs: model(inputs, **options))(inputs))


@pytest.mark.parametrize("make", [transformer, recurrent])
def test_scheduled_sampling_at_rate_0_equals_teacher_forcing(make):
    model = make()
    taught = ScheduledSampling(model, 0.0)
    # Training and inference round differently.
    np.testing.assert_allclose(logits(taught, training=True), logits(model), atol=1e-5)


@pytest.mark.parametrize("make", [transformer, recurrent])
def test_scheduled_sampling_at_rate_1_uses_the_models_own_words(make):
    model = make()
    own = logits(model).argmax(-1)
    expected = np.array(TARGET)
    for row, step in np.argwhere(TARGET != 0):
        # The start token stays; step t predicts the token at t + 1; id 0 is padding, not a word.
        if step and own[row, step - 1]:
            expected[row, step] = own[row, step - 1]
    assert (expected != TARGET).sum() >= 3
    taught = ScheduledSampling(model, 1.0)
    second = logits(model, {"source": SOURCE, "target": expected})
    np.testing.assert_allclose(logits(taught, training=True), second, atol=1e-5)


def test_scheduled_sampling_in_inference_keeps_inputs_and_random_state():
    model = transformer()
    taught = ScheduledSampling(model, 1.0)
    states = taught.trainable_variables, taught.non_trainable_variables
    values = [[variable.value for variable in part] for part in states]
    told, after = quick(lambda *values: taught.stateless_call(*values, INPUTS))(*values)
    np.testing.assert_allclose(ops.convert_to_numpy(told), logits(model), atol=1e-6)
    assert any(variable is taught.seed_generator.state for variable in states[1])
    for old, new in zip(values[1], after, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(new), ops.convert_to_numpy(old))


@weekly_on_jax
def test_sampling_rate_follows_the_update_of_each_micro_batch():
    seen = []

    def rate(step):
        seen.append(int(step))
        return 0.3

    taught = ScheduledSampling(transformer(), rate, micro_batches=2)
    inputs = {"source": np.ones((200, 3), np.int32), "target": np.full((200, 50), 7, np.int32)}
    if (logits(taught.plain, inputs).argmax(-1) == 7).mean() > 0.5:
        inputs["target"][:] = 8
    word = inputs["target"][0, 0]
    # Positions where the model predicts another word; id 0 is padding, not a word.
    said = logits(taught.plain, inputs).argmax(-1)[:, :-1]
    own = (said != word) & (said != 0)
    assert own.sum() >= 4000
    replaced = [
        (ops.convert_to_numpy(taught._replace(inputs)) != word)[:, 1:][own].mean() for _ in range(5)
    ]
    assert seen == [0, 0, 1, 1, 2]
    np.testing.assert_allclose(replaced, 0.3, atol=0.03)
    assert len(set(replaced)) > 1


def test_training_model_shares_the_weights_of_the_model():
    model = transformer()
    settings = load_settings(overrides={"training.scheduled_sampling": "exponential"})
    taught = training_model(model, settings)
    assert [w.path for w in taught.weights] == [w.path for w in model.weights]
    assert [id(w) for w in taught.trainable_weights] == [id(w) for w in model.trainable_weights]
    assert training_model(model, load_settings()) is model


@weekly_on_jax
def test_scheduled_sampling_uses_a_rate_variable_set_by_a_callback():
    """The losses of `fit` match teacher forcing at rate 0 and the model's own words at rate 1."""
    model, share = transformer(), keras.Variable(0.0, trainable=False)
    taught = ScheduledSampling(model, share)
    assert [w.path for w in taught.trainable_weights] == [w.path for w in model.trainable_weights]
    loss = SequenceCrossEntropy()
    # Compile as training does; otherwise JAX runs operations one by one.
    on_jax = keras.backend.backend() == "jax"
    taught.compile(keras.optimizers.SGD(0.0), loss, jit_compile=on_jax)
    targets = np.array([[6, 4, 7, 9, 3], [6, 3, 0, 0, 0]], np.int32)
    true, own = (
        float(loss(targets, logits(ScheduledSampling(model, rate), training=True)))
        for rate in (0.0, 1.0)
    )
    assert true != pytest.approx(own, rel=1e-4)
    follow = FollowSchedule(share, lambda step: [0.0, 1.0, 0.0][step])
    history = taught.fit(
        INPUTS, targets, epochs=3, shuffle=False, verbose=0, callbacks=[follow]
    ).history
    np.testing.assert_allclose(history["loss"], [true, own, true], rtol=1e-5)


@pytest.mark.parametrize(
    ("rate", "error", "message"),
    [
        (1.5, ValueError, "`rate` must be from 0 to 1, received 1.5"),
        ("linear", TypeError, "a function of the update or a keras.Variable, received 'linear'"),
        (keras.Variable(0.5), ValueError, "a trainable variable: make it with `trainable=False`"),
    ],
)
def test_scheduled_sampling_rejects_an_invalid_rate(rate, error, message):
    with pytest.raises(error, match=message):
        ScheduledSampling(transformer(), rate)
