"""Word-level distillation: the loss in numpy, the vocabulary, and its effect in a training."""

import shutil

import keras
import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from training.toy import assert_equal_tensors, killed_after, quiet_train, tensors_of, toy_settings

import keras_seq
from keras_seq.losses.sequence_cross_entropy import ComparableCrossEntropy
from keras_seq.preparation import resolve_settings
from keras_seq.settings import SettingsError, load_settings
from keras_seq.training.word_distillation import DistillationLoss, StudentAndTeacher

pytestmark = pytest.mark.slow

generator = np.random.default_rng(1)


def expected_loss(targets, student, teacher, weights, share):
    """The loss of the formula; target 0 is padding."""
    total = 0.0
    for place in np.argwhere(targets):
        own, taught = student[tuple(place)], teacher[tuple(place)]
        true = -log_softmax(own)[targets[tuple(place)]]
        imitated = -(softmax(taught) * log_softmax(own)).sum()
        total += weights[place[0]] * ((1 - share) * true + share * imitated)
    return total


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_gradient_is_that_of_the_formula(share):
    """The slope of the formula between two points, and that of the loss at a step between them."""
    import tensorflow as tf

    targets = generator.integers(1, 6, (3, 4))
    targets[1, 2:] = 0
    student, teacher, direction = generator.normal(size=(3, 3, 4, 6))
    weights = np.array([0.5, 1.0, 2.0], "float32")
    loss = DistillationLoss(ComparableCrossEntropy(0.0, "sum"), 0, share)
    with tf.GradientTape() as tape:
        variable = tf.Variable(np.stack([student, teacher], axis=-2).astype("float32"))
        # Padding may be NaN.
        padded = tf.where((targets == 0)[..., None, None], np.float32("nan"), variable)
        received = loss(targets, padded, weights)
    gradient = tape.gradient(received, variable).numpy()
    assert np.isfinite(gradient).all()

    def value(step):
        return expected_loss(targets, student + step * direction, teacher, weights, share)

    slope = (value(1e-5) - value(-1e-5)) / 2e-5
    assert (gradient[..., 0, :] * direction).sum() == pytest.approx(slope, rel=1e-3)
    # The value is that of the cross-entropy alone.
    without = expected_loss(targets, student, teacher, weights, 0.0)
    assert float(received) == pytest.approx(without, rel=1e-5)


@pytest.mark.jax
def test_teacher_has_no_dropout_and_none_of_the_weights_of_the_training():
    inputs = keras.Input((5,))
    student, teacher = (
        keras.Model(inputs, keras.layers.Dropout(0.5)(keras.layers.Dense(3)(inputs)))
        for _ in range(2)
    )
    wrapper = StudentAndTeacher(student, teacher)
    assert [weight.path for weight in wrapper.weights] == [
        weight.path for weight in student.weights
    ]
    ones = np.ones((2, 5), "float32")
    both = keras.ops.convert_to_numpy(wrapper(ones, training=True))
    np.testing.assert_allclose(both[:, 1], keras.ops.convert_to_numpy(teacher(ones)))
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(wrapper(ones))[:, 0], keras.ops.convert_to_numpy(student(ones))
    )


@pytest.mark.weekly
def test_student_imitates_its_teacher_and_resumes_exactly(tmp_path):
    """The teacher always says "a", which the targets of its student do not."""

    def settings(pairs="train.tsv", **more):
        limits = {"max_steps": 40, "validate_every": 40, "checkpoint_every": 10}
        options = {f"training__{key}": value for key, value in limits.items()} | more
        return toy_settings(tmp_path, data__pairs=str(tmp_path / pairs), **options)

    settings()
    lines = (tmp_path / "train.tsv").read_text().splitlines()
    (tmp_path / "a.tsv").write_text("".join(f"{line.split(chr(9))[0]}\ta a\n" for line in lines))
    teacher, student, killed = (tmp_path / name for name in ("teacher", "student", "killed"))
    longer = {"training__max_steps": 80, "training__validate_every": 80}
    quiet_train(settings("a.tsv", model__members=2, **longer), teacher)
    with_teacher = settings(training__teacher=str(teacher), training__teacher_weight=0.9)
    result, said = quiet_train(with_teacher, student)
    assert f"the vocabulary is that of {teacher}\n" in said
    assert f"teacher: the best weights of {teacher}, of step 80, are copied\n" in said
    # The copy is enough to resume.
    killed_after(30, student, killed)
    teacher.rename(tmp_path / "moved")
    quiet_train(with_teacher, killed)
    (tmp_path / "moved").rename(teacher)
    assert_equal_tensors(tensors_of(student, 40, "training"), tensors_of(killed, 40, "training"))
    quiet_train(settings(), tmp_path / "alone")
    lines = ["b c d e f", "h g f e d", "c c b b h"]
    assert all(text.startswith("a") for text in keras_seq.translate(student, lines))
    assert not any(text.startswith("a") for text in keras_seq.translate(tmp_path / "alone", lines))


@pytest.mark.weekly
def test_unsuitable_teachers_are_refused_before_the_text_is_read(tmp_path):
    def train(**options):
        keras_seq.train(toy_settings(tmp_path, **options), tmp_path / "new", notice=[].append)

    letters = toy_settings(tmp_path, tokenizer__kind="char", training__max_steps=1)
    quiet_train(letters, tmp_path / "letters")
    teacher = {"training__teacher": str(tmp_path / "letters"), "training__max_steps": 1}
    with pytest.raises(SettingsError, match="with the vocabulary of .*letters: .*subword_alpha"):
        train(**teacher, training__subword_alpha=0.1)
    with pytest.raises(SettingsError, match="letters: tokenizer.joint: .*with model.copy"):
        train(**teacher, model__copy=True)
    with pytest.raises(
        keras_seq.InputError, match="of task 'translate', expected .*language-model"
    ):
        text = tmp_path / "text.txt"
        text.write_text("a b c\n" * 9)
        values = {"task": "language-model", "data.text": str(text)}
        values["training.teacher"] = teacher["training__teacher"]
        keras_seq.train(load_settings(overrides=values), tmp_path / "new", notice=[].append)
    quiet_train(toy_settings(tmp_path, training__max_steps=1), tmp_path / "words")
    values = {"data.prepared": str(tmp_path / "words"), "training.max_steps": 1}
    values["training.teacher"] = teacher["training__teacher"]
    with pytest.raises(keras_seq.InputError, match="its vocabulary differs from that of .*words"):
        keras_seq.train(load_settings(overrides=values), tmp_path / "new", notice=[].append)
    assert not (tmp_path / "new").exists()
    with pytest.raises(keras_seq.InputError, match="the teacher and the new run are in the same"):
        settings = toy_settings(tmp_path, training__teacher=str(tmp_path / "words"))
        keras_seq.train(settings, tmp_path / "words", overwrite=True, notice=[].append)
    # The run of words is prepared; without a checkpoint, a teacher cannot be added any more.
    shutil.rmtree(tmp_path / "words" / "checkpoints")
    with pytest.raises(keras_seq.InputError, match="different settings: training.teacher none ->"):
        settings = toy_settings(tmp_path, **teacher)
        keras_seq.train(settings, tmp_path / "words", notice=[].append)


@pytest.mark.parametrize(
    ("option", "members"),
    [
        ("training.label_smoothing=0.2", 2),
        ("training.teacher=runs/a", 1),
        ("training.scheduled_sampling=linear", 1),
    ],
)
def test_settings_of_one_model_are_not_refused_because_of_the_size_of_the_corpus(
    tmp_path, option, members
):
    """For few pairs of symbols, the default is two models."""
    (tmp_path / "pairs.tsv").write_text("".join(f"{n}\t{n + 1}\n" for n in range(100, 900)))
    overrides = [f"data.pairs={tmp_path / 'pairs.tsv'}", "model.family=transformer", option]
    settings, _ = resolve_settings(overrides=overrides)
    assert settings.model.members == members


@pytest.mark.parametrize(
    ("preset", "overrides", "message"),
    [
        ("rnn-small", ["training.r_drop=5"], "expected 0 with training.teacher"),
        (
            "transformer-tiny",
            ["model.members=2"],
            "received 'runs/a', expected none with model.members 2",
        ),
        ("tag-birnn", [], "which is for task 'translate' or 'language-model'"),
    ],
)
def test_what_does_not_suit_is_refused(preset, overrides, message):
    with pytest.raises(SettingsError, match=message):
        load_settings(preset=preset, overrides=["training.teacher=runs/a", *overrides])
