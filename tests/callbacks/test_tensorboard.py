"""Event files of a user's own `fit`, read by TensorBoard itself."""

import time

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq.callbacks import ExactCheckpoint, StopAtLimit, TensorBoard, Validation
from keras_seq.callbacks.attention_snapshots import attention_picture
from keras_seq.storage.checkpoints import CheckpointStore
from keras_seq.training.event_log import EventLog

pytestmark = pytest.mark.jax

X, Y = np.ones((12, 2), "float32"), np.zeros((12, 1), "float32")


def make():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), "mse")
    return model


def read(directory):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = accumulator.EventAccumulator(str(directory))
    events.Reload()
    return events


def scalars(events, tag):
    return {event.step: event.value for event in events.Scalars(tag)}


def test_tensorboard_reads_back_scalars_texts_and_images(tmp_path):
    model, log, looks = make(), EventLog(tmp_path), []
    kernel, bias = (ops.convert_to_numpy(w).astype("f8") for w in model.trainable_weights)
    tokens = iter(range(0, 10**6, 50))
    attention = np.array([[1.0, 0.0, 0.25], [0.5, 0.5, 0.0]])

    def samples():
        # This output depends on the weights at the time of the call.
        looks.append(float(ops.convert_to_numpy(model(X[:1]))[0, 0]))
        return [("a *dog*", str(looks[-1])), ("two\n# lines", "reference", "output")]

    model.fit(
        X,
        Y,
        batch_size=2,
        epochs=2,
        verbose=0,
        validation_data=(X, Y),
        callbacks=[
            Validation(lambda step: {"bleu": step / 2}, 5, "bleu", report=log.write),
            TensorBoard(
                log,
                every=2,
                tokens=lambda: next(tokens),
                samples=samples,
                attend=lambda: [attention],
                show_every=5,
            ),
        ],
    )
    log.close()
    losses, outputs = [], []
    for _ in range(12):
        output = kernel.sum() + bias[0]
        losses.append(output**2)
        kernel -= 0.05 * 2 * output
        bias -= 0.05 * 2 * output
        outputs.append(kernel.sum() + bias[0])
    events = read(tmp_path)
    means = {step: (losses[step - 2] + losses[step - 1]) / 2 for step in range(2, 13, 2)}
    assert scalars(events, "training/loss") == pytest.approx(means, rel=1e-4)
    assert scalars(events, "training/learning_rate") == pytest.approx(dict.fromkeys(means, 0.05))
    rates = scalars(events, "training/target_tokens_per_second")
    paces = scalars(events, "training/steps_per_second")
    assert rates.keys() == paces.keys() == means.keys()
    # `tokens` grows by 50 per call, and the callback calls it every 2 updates.
    assert rates[4] == pytest.approx(25 * paces[4], rel=1e-4)
    expected = {6: outputs[5] ** 2, 12: outputs[11] ** 2}
    assert scalars(events, "validation/loss") == pytest.approx(expected, rel=1e-4)
    assert scalars(events, "bleu") == {5: 2.5, 10: 5.0, 12: 6.0}
    assert looks == pytest.approx([outputs[4], outputs[9], outputs[11]], rel=1e-4)
    texts = {
        tag: {
            event.step: event.tensor_proto.string_val[0].decode() for event in events.Tensors(tag)
        }
        for tag in ("samples/1", "samples/2")
    }
    assert texts["samples/1"] == {
        step: f"    source    a *dog*\n    model     {looks[i]}"
        for i, step in enumerate([5, 10, 12])
    }
    assert texts["samples/2"][12] == (
        "    source    two # lines\n    reference reference\n    model     output"
    )
    metadata = events.SummaryMetadata("samples/1").plugin_data
    assert metadata.plugin_name == "text"
    pictures = events.Images("attention/1")
    assert [(image.step, image.width, image.height) for image in pictures] == [
        (step, 36, 24) for step in (5, 10, 12)
    ]
    assert pictures[0].encoded_image_string == attention_picture(attention)


def test_training_loss_curve_matches_after_resuming_within_an_epoch(tmp_path):
    """The restored metrics make `fit` include the earlier batches of the epoch in its mean."""

    def fit(name, *others):
        generator = np.random.default_rng(1)
        inputs = generator.normal(size=(12, 4, 2)).astype("float32")
        model, folder = make(), tmp_path / name
        checkpoint = ExactCheckpoint(CheckpointStore(folder / "saved"), 100, 6)
        begin = checkpoint.restore(model)
        log = EventLog(folder / "events", initial_step=begin)
        model.fit(
            checkpoint.remaining(lambda step: (inputs[step], inputs[step, :, :1])),
            initial_epoch=checkpoint.epoch,
            epochs=2,
            steps_per_epoch=6,
            shuffle=False,
            verbose=0,
            callbacks=[TensorBoard(log, every=1, initial_step=begin), *others, checkpoint],
        )
        log.close()
        return folder / "events"

    straight = scalars(read(fit("straight")), "training/loss")
    fit("stopped", StopAtLimit(max_steps=3))
    # Event files are named by the second, so the next one needs a later second.
    time.sleep(1.1)
    stopped = scalars(read(fit("stopped")), "training/loss")
    # The first event after resuming is the mean over the epoch so far.
    assert stopped.pop(4) == pytest.approx(np.mean([straight[i] for i in range(1, 5)]), rel=1e-4)
    del straight[4]
    assert stopped == pytest.approx(straight, rel=1e-3)


def test_attention_image_decoded_by_pillow_shows_the_weights(tmp_path):
    """Pillow decodes the PNG bytes that were read from the event file."""
    image = pytest.importorskip("PIL.Image")
    log = EventLog(tmp_path)
    weights = np.random.default_rng(1).random((4, 7))
    log.write_pictures(3, "attention", [attention_picture(weights, cell=5)])
    content = read(tmp_path).Images("attention/1")[0].encoded_image_string
    (tmp_path / "picture.png").write_bytes(content)
    with image.open(tmp_path / "picture.png") as picture:
        pixels = np.asarray(picture)
    assert pixels.shape == (20, 35)
    np.testing.assert_array_equal(pixels[2::5, 2::5], np.round(255 * (1 - weights)))
    log.close()


def test_missing_tensorboard_raises_import_error_with_install_hint(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'keras-seq\[tensorboard\]'"):
        TensorBoard(EventLog(tmp_path))


def test_tensorboard_rejects_a_show_every_of_zero(tmp_path):
    with pytest.raises(ValueError, match="`show_every` must be a positive integer, received 0"):
        TensorBoard(EventLog(tmp_path), show_every=0)
