"""Minimum risk training: GLEU by counting, the gradient by enumeration, and its effect."""

import itertools
from collections import Counter

import keras
import numpy as np
import pytest
from training.toy import assert_equal_tensors, killed_after, quiet_train, tensors_of, toy_settings
from weekly import weekly_on_jax

import keras_seq
from keras_seq.models import Transformer
from keras_seq.settings import SettingsError, load_settings
from keras_seq.training import minimum_risk
from keras_seq.training.minimum_risk import MinimumRisk, RiskLoss, sentence_gleu

pytestmark = pytest.mark.slow

BEGIN, END, VOCABULARY = 2, 3, 7


def counted_gleu(candidate, reference):
    """GLEU by its definition: n-grams of both sequences that match, each as often as in both."""

    def ngrams(ids):
        return Counter(tuple(ids[i : i + n]) for n in range(1, 5) for i in range(len(ids) - n + 1))

    ours, true = ngrams(candidate), ngrams(reference)
    longest = max(ours.total(), true.total())
    return (ours & true).total() / longest if longest else 0.0


@pytest.mark.jax
@pytest.mark.torch
def test_gleu_equals_a_count_of_ngrams():
    generator = np.random.default_rng(0)
    candidates, references = np.zeros((2, 40, 9), "int32")
    expected = []
    for row in range(40):
        # Few ids, so that n-grams repeat. The first rows are equal, empty and short.
        ours, true = (
            generator.integers(4, 7, generator.integers(0, 10)).tolist() for _ in range(2)
        )
        true = ours if row == 0 else true
        candidates[row, : len(ours)], references[row, : len(true)] = ours, true
        expected.append(counted_gleu(ours, true))
    tensors = map(keras.ops.convert_to_tensor, (candidates, references))
    received = keras.ops.convert_to_numpy(sentence_gleu(*tensors))
    np.testing.assert_allclose(received, expected, rtol=1e-6)
    assert 0 < min(value for value in expected if value) < max(expected) <= 1


def tiny_model(seed=0):
    keras.utils.set_random_seed(seed)
    return Transformer(
        VOCABULARY, VOCABULARY, 1, 1, units=8, feedforward_units=8, num_heads=2, dropout=0.0
    )


SOURCE = np.array([[4, 5, END]], "int32")
REFERENCE = np.array([[5, 4, END]], "int32")


def targets_of(longest):
    """All targets of at most `longest` tokens, padded; the last one may lack an end token."""
    body = range(END + 1, VOCABULARY)
    ended = ((*y, END) for n in range(longest) for y in itertools.product(body, repeat=n))
    all_targets = [*ended, *itertools.product(body, repeat=longest)]
    return np.array([[*y, *[0] * (longest - len(y))] for y in all_targets], "int32")


def exact_gradient(model, variable, longest):
    """The covariance of the cost and of the gradient of log P(y | x), over all targets y.

    The special tokens are never sampled; the other tokens of a step share their probability.
    """
    import tensorflow as tf

    targets = targets_of(longest)
    costs = np.array([1 - counted_gleu([*filter(None, y)], REFERENCE[0].tolist()) for y in targets])
    inputs = np.concatenate([np.full((len(targets), 1), BEGIN), targets[:, :-1]], axis=1)
    with tf.GradientTape() as tape:
        logits = model({"source": np.repeat(SOURCE, len(targets), 0), "target": inputs})
        logs = tf.nn.log_softmax(logits)
        real = (targets > 0).astype("float32")
        total = tf.reduce_sum(tf.gather(logs, targets, batch_dims=2) * real, axis=1)
        sampled = np.where(np.arange(VOCABULARY) < END, -np.inf, logs.numpy())
        sampled -= np.log(np.exp(sampled).sum(-1, keepdims=True))
        chosen = np.take_along_axis(sampled, targets[..., None], -1)[..., 0]
        probability = np.exp(np.where(targets > 0, chosen, 0.0).sum(1))
        np.testing.assert_allclose(probability.sum(), 1, rtol=1e-5)
        above_mean = probability * (costs - probability @ costs)
        value = tf.reduce_sum(above_mean.astype("float32") * total)
    return tf.convert_to_tensor(tape.gradient(value, variable)).numpy()


@pytest.mark.weekly
def test_gradient_is_that_of_the_expected_cost(monkeypatch):
    """The mean over many samples, against the sum over all targets of at most three tokens."""
    import tensorflow as tf

    monkeypatch.setattr(minimum_risk, "_TEMPERATURE", 1.0)
    model = tiny_model()
    wrapper = MinimumRisk(model, [model], model, num_samples=64, max_length=3, seed=0)
    variable = model.trainable_weights[-1].value
    batch = {"source": SOURCE, "target": np.array([[BEGIN, 5, 4]]), "reference": REFERENCE}

    @tf.function
    def gradient():
        with tf.GradientTape() as tape:
            risk = tf.reduce_sum(wrapper(batch, training=True)["risk"])
        return tf.convert_to_tensor(tape.gradient(risk, variable))

    received = np.array([gradient().numpy() for _ in range(200)])
    expected = exact_gradient(model, variable, 3)
    error = 5 * received.std(axis=0) / np.sqrt(len(received))
    assert (np.abs(received.mean(axis=0) - expected) <= error + 1e-6).all()
    assert error.max() < np.abs(expected).max() / 4


@pytest.mark.weekly
@weekly_on_jax
@pytest.mark.jax
@pytest.mark.torch
def test_fit_raises_the_probability_of_the_reference():
    """By the risk alone, without the cross-entropy."""
    model = tiny_model(1)
    wrapper = MinimumRisk(model, [model], model, num_samples=16, max_length=4, seed=0)

    def probability():
        target = np.array([[BEGIN, 5, 4]], "int32")
        logits = model({"source": SOURCE, "target": target})
        logs = keras.ops.convert_to_numpy(keras.ops.log_softmax(logits))[0]
        return np.exp(sum(logs[step, token] for step, token in enumerate(REFERENCE[0])))

    before = probability()
    wrapper.compile(
        keras.optimizers.Adam(0.01), loss={"logits": None, "risk": RiskLoss(1.0)}, jit_compile=False
    )
    rows = 8
    inputs = {"source": SOURCE, "target": np.array([[BEGIN, 5, 4]]), "reference": REFERENCE}
    inputs = {name: np.repeat(array, rows, axis=0) for name, array in inputs.items()}
    targets = {"logits": inputs["reference"], "risk": np.zeros(rows, "float32")}
    wrapper.fit(inputs, targets, batch_size=rows, epochs=30, verbose=0)
    assert probability() > 3 * before


@pytest.mark.weekly
def test_run_prefers_what_is_similar_to_most_targets(tmp_path):
    """The most frequent target is unlike all others, which are alike: the risk chooses these.

    Cross-entropy learns the frequencies, so that the search finds the most frequent target.
    """
    others = [f"b c d e f {last}" for last in "abcdefgh"]
    lines = ["x\ta a a a a a\n"] * 50 + [f"x\t{other}\n" for other in others for _ in range(19)]
    (tmp_path / "train.tsv").write_text("".join(lines))
    (tmp_path / "valid.tsv").write_text("x\tb c d e f g\n")
    options = {
        "training__max_steps": 60,
        "training__validate_every": 60,
        "training__checkpoint_every": 20,
        "model__dropout": 0.0,
        "training__label_smoothing": 0.0,
        "tokenizer__kind": "word",
    }
    quiet_train(toy_settings(tmp_path, **options), tmp_path / "likely")
    assert keras_seq.translate(tmp_path / "likely", ["x"]) == ["a a a a a a"]
    options |= {
        "training__from_run": str(tmp_path / "likely"),
        "training__minimum_risk": 50.0,
        "model__members": 1,
    }
    quiet_train(toy_settings(tmp_path, **options), tmp_path / "risk")
    (found,) = keras_seq.translate(tmp_path / "risk", ["x"])
    assert found.startswith("b c d e f")
    killed_after(20, tmp_path / "risk", tmp_path / "killed")
    quiet_train(toy_settings(tmp_path, **options), tmp_path / "killed")
    assert_equal_tensors(
        tensors_of(tmp_path / "risk", 60, "training"),
        tensors_of(tmp_path / "killed", 60, "training"),
    )


@pytest.mark.weekly
def test_members_of_a_run_learn_from_the_samples_of_all(tmp_path):
    options = {"training__max_steps": 4, "training__minimum_risk": 10.0}
    quiet_train(toy_settings(tmp_path, model__members=2, **options), tmp_path / "two")
    assert np.isfinite(
        np.concatenate([a.ravel() for a in tensors_of(tmp_path / "two").values()])
    ).all()


@pytest.mark.parametrize(
    ("preset", "overrides", "message"),
    [
        ("rnn-small", ["training.r_drop=5"], "expected 0 with training.minimum_risk"),
        ("lm-gru", [], "expected 0 with task 'language-model'"),
        ("rnn-small", ["model.attention=hard"], "expected 0 with model.attention 'hard'"),
    ],
)
def test_what_does_not_suit_is_refused(preset, overrides, message):
    with pytest.raises(SettingsError, match=message):
        load_settings(preset=preset, overrides=["training.minimum_risk=50", *overrides])
