"""R-Drop: the loss in numpy and in another library, and its effect in a training."""

import keras
import numpy as np
import pytest
from keras import ops
from scipy.special import rel_entr, softmax
from training.toy import assert_equal_tensors, killed_after, quiet_train, tensors_of, toy_settings

from keras_seq.losses.label_losses import NO_LABEL, ComparableLabelCrossEntropy
from keras_seq.losses.sequence_cross_entropy import ComparableCrossEntropy
from keras_seq.run import Run
from keras_seq.run.models import load_model
from keras_seq.settings import SettingsError, load_settings
from keras_seq.training.r_drop import AgreementLoss, TwoPasses

pytestmark = pytest.mark.slow

generator = np.random.default_rng(1)


def expected_loss(targets, logits, weights, factor, ignored):
    """The loss of logits of M passes, with `scipy.special.rel_entr` as p log(p / q)."""
    probabilities = softmax(logits, axis=-1)
    total = 0.0
    for place in np.ndindex(targets.shape):
        if targets[place] == ignored:
            continue
        passes = probabilities[place]
        loss = np.mean([-np.log(p[targets[place]]) for p in passes])
        pairs = [(passes[i], passes[i + 1]) for i in range(0, len(passes), 2)]
        both = [rel_entr(p, q).sum() + rel_entr(q, p).sum() for p, q in pairs]
        total += weights[place[0]] * (loss + factor / 4 * np.mean(both))
    return total


@pytest.mark.parametrize("passes", [2, 4])
@pytest.mark.parametrize("kind", ["tokens", "labels"])
def test_gradient_is_that_of_the_cross_entropy_and_both_divergences(kind, passes):
    """The slope of the formula between two points, and that of the loss at a step between them."""
    shape, ignored = ((3, 4), 0) if kind == "tokens" else ((3,), NO_LABEL)
    inner = ComparableCrossEntropy if kind == "tokens" else ComparableLabelCrossEntropy
    targets = generator.integers(1, 6, shape)
    targets[1, ...] = ignored
    logits = generator.normal(size=(*shape, passes, 6))
    direction = generator.normal(size=logits.shape)
    weights = np.array([0.5, 1.0, 2.0], "float32")
    loss = AgreementLoss(inner(0.0, "sum"), ignored, 3.0)

    def value(step):
        return expected_loss(targets, logits + step * direction, weights, 3.0, ignored)

    import tensorflow as tf

    with tf.GradientTape() as tape:
        variable = tf.Variable(logits.astype("float32"))
        # Padding may be NaN.
        padded = tf.where((targets == ignored)[..., None, None], np.float32("nan"), variable)
        received = loss(targets, padded, weights)
    gradient = tape.gradient(received, variable).numpy()
    assert np.isfinite(gradient).all()
    slope = (value(1e-5) - value(-1e-5)) / 2e-5
    assert (gradient * direction).sum() == pytest.approx(slope, rel=1e-3)
    # The value is that of the cross-entropy alone.
    without = expected_loss(targets, logits, weights, 0.0, ignored)
    assert float(received) == pytest.approx(without, rel=1e-5)
    assert expected_loss(targets, logits, weights, 3.0, ignored) > without


def test_passes_of_one_model_are_side_by_side_and_differ_by_dropout():
    inputs = keras.Input((5,))
    models = [keras.Model(inputs, keras.layers.Dropout(0.5)(inputs) * scale) for scale in (1, 10)]
    wrapper = TwoPasses(models[0], models)
    ones = np.ones((2, 5), "float32")
    np.testing.assert_allclose(wrapper(ones)[:, :, 0], [[1, 1, 10, 10]] * 2)
    trained = ops.convert_to_numpy(wrapper(ones, training=True))
    assert trained.shape == (2, 4, 5)
    assert set(trained[:, :2].ravel()) == {0, 2} and set(trained[:, 2:].ravel()) == {0, 20}
    assert (trained[:, 0] != trained[:, 1]).any()


def divergence(run):
    """The mean divergence between two passes of a trained model with dropout."""
    model = load_model(run, "latest")
    batch = {
        "source": generator.integers(4, 9, (64, 5)),
        "target": generator.integers(4, 9, (64, 5)),
    }
    logits = TwoPasses(model, [model])(batch, training=True)
    return float(np.mean(AgreementLoss(None, 0, 1.0).call(np.ones((64, 5)), logits)))


@pytest.mark.weekly
def test_training_makes_passes_agree_and_resumes_exactly(tmp_path):
    def settings(factor):
        return toy_settings(
            tmp_path,
            training__r_drop=factor,
            model__dropout=0.3,
            training__max_steps=40,
            training__validate_every=40,
            training__checkpoint_every=10,
        )

    straight, killed = tmp_path / "straight", tmp_path / "killed"
    quiet_train(settings(20.0), straight)
    quiet_train(settings(20.0), killed_after(30, straight, killed))
    assert_equal_tensors(tensors_of(straight, 40, "training"), tensors_of(killed, 40, "training"))
    quiet_train(settings(0.0), tmp_path / "plain")
    with_r_drop, without = (divergence(Run.open(tmp_path / name)) for name in ("straight", "plain"))
    assert with_r_drop < 0.5 * without


@pytest.mark.parametrize(
    "overrides, message",
    [
        (["model.dropout=0"], "expected 0 without dropout: set model.dropout"),
        (["training.scheduled_sampling=linear"], "expected 'none' with training.r_drop"),
        (["model.attention=hard"], "expected 0 with model.attention 'hard'"),
    ],
)
def test_what_does_not_suit_is_refused(overrides, message):
    with pytest.raises(SettingsError, match=message):
        load_settings(preset="rnn-small", overrides=["training.r_drop=5", *overrides])
    with pytest.raises(SettingsError, match=r"training.r_drop: .*only texts have one label each"):
        load_settings(preset="tag-birnn", overrides=["training.r_drop=5"])
