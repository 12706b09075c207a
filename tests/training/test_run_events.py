"""TensorBoard logs of a training: TensorBoard reads them, and training stays bit-identical."""

import keras
import numpy as np
import pytest
import safetensors.numpy
from differentiation import quick
from training.toy import quiet_train, toy_settings, without_tensorboard

from keras_seq.analysis.attention import AttentionExtractor
from keras_seq.callbacks.attention_snapshots import attention_picture
from keras_seq.inference.translator import Translator
from keras_seq.run import Run
from keras_seq.run.models import load_model
from keras_seq.tasks.translation import validation_search

pytestmark = pytest.mark.slow

STEPS = 5


@pytest.fixture(scope="module", autouse=True)
def no_pictures():
    """The trainings here write images."""


@pytest.fixture(scope="module", params=["rnn"])
def folder(request, tmp_path_factory):
    """Trains a run with TensorBoard and the same run without TensorBoard."""
    folder = tmp_path_factory.mktemp("events")
    settings = toy_settings(
        folder,
        training__max_steps=STEPS,
        training__validate_every=3,
        training__sample_count=2,
        training__ema=0.5,
        model__dropout=0.3,
        model__family=request.param,
    )
    quiet_train(settings, folder / "run")
    with without_tensorboard():
        quiet_train(settings, folder / "without")
    assert not (folder / "without" / "tensorboard").exists()
    return folder


@pytest.fixture(scope="module")
def events(folder):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(folder / "run" / "tensorboard"))
    events.Reload()
    return events


def test_tensorboard_score_steps_and_samples_match_the_other_logs(folder, events):
    assert [event.step for event in events.Scalars("validation/exact")] == [3, STEPS]
    text = "".join(
        f"  step {event.step}, line {line}\n" + event.tensor_proto.string_val[0].decode() + "\n"
        for i in range(2)
        for line, event in [((1, 7)[j], events.Tensors(f"samples/{j + 1}")[i]) for j in range(2)]
    )
    assert text == (folder / "run" / "samples.txt").read_text()


def test_attention_image_shows_the_attention_of_the_validated_weights(folder, events):
    pictures = events.Images("attention/1")
    assert [picture.step for picture in pictures] == [3, STEPS]
    run = Run.open(folder / "run")
    # The checkpoint stores the averaged weights after the last update.
    model = load_model(run, "latest")
    extractor = AttentionExtractor(model, run.source_tokenizer, 100)
    sample = events.Tensors("samples/1")[-1].tensor_proto.string_val[0].decode().split("\n")
    source, hypothesis = (sample[i][14:] for i in (0, 2))
    [[translation]] = Translator.of_run(run, model, validation_search(run)).translate([source])
    assert translation.text == hypothesis
    attention = extractor([source], [[translation]])[0][0].weights
    # Compute the expected attention without padding.
    sources = np.array([[*run.source_tokenizer.encode([source])[0], 3]], np.int32)
    targets = np.array([[2, *translation.tokens]], np.int32)
    if not translation.ended:
        targets = targets[:, :-1]
    expected = quick(model.with_attention())({"source": sources, "target": targets})
    expected = keras.ops.convert_to_numpy(expected["attention"])[0]
    assert attention.shape == (targets.size, sources.size)
    np.testing.assert_allclose(attention, expected, atol=1e-5)
    np.testing.assert_allclose(attention.sum(axis=1), 1, atol=1e-5)
    assert (pictures[-1].width, pictures[-1].height) == (12 * sources.size, 12 * targets.size)
    assert pictures[-1].encoded_image_string == attention_picture(attention)


@pytest.mark.weekly
def test_training_with_tensorboard_is_bit_identical_to_training_without(folder):
    stored = []
    for name in ("run", "without"):
        directory = folder / name / "checkpoints" / f"step-{STEPS:08}"
        for part in ("weights", "training"):
            stored.append(safetensors.numpy.load_file(directory / f"{part}.safetensors"))
    for one, other in zip(stored[:2], stored[2:], strict=True):
        assert one.keys() == other.keys()
        assert [key for key in one if one[key].tobytes() != other[key].tobytes()] == []
