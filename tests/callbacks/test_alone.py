"""Callbacks in a user's own `fit`, compared with numpy."""

import struct
import zlib

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq.callbacks import (
    AttentionSnapshots,
    AverageWeights,
    FollowSchedule,
    SampleTranslations,
    Validation,
)
from keras_seq.callbacks.attention_snapshots import grey_png
from keras_seq.schedules.rates import cyclical_annealing, linear_annealing, logistic_annealing

pytestmark = pytest.mark.jax

INPUTS = np.ones((6, 2), np.float32)
TARGETS = np.zeros((6, 1), np.float32)


class Scaled(keras.layers.Layer):
    """Multiplies its input by a variable that a callback sets."""

    def __init__(self):
        super().__init__()
        self.factor = self.add_weight(name="factor", shape=(), trainable=False)

    def call(self, inputs):
        return inputs * self.factor


def model():
    keras.utils.set_random_seed(1)
    made = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1), Scaled()])
    made.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=False)
    return made


def fit(made, *callbacks, epochs=1):
    made.fit(INPUTS, TARGETS, batch_size=2, epochs=epochs, verbose=0, callbacks=list(callbacks))


class Losses(keras.callbacks.Callback):
    """Records the loss of each update."""

    def __init__(self):
        super().__init__()
        self.losses = []

    def on_epoch_begin(self, epoch, logs=None):
        self.sum = 0.0

    def on_train_batch_end(self, batch, logs=None):
        # `fit` reports the running mean of the epoch.
        total = logs["loss"] * (batch + 1)
        self.losses.append(total - self.sum)
        self.sum = total


def test_follow_schedule_sets_the_value_used_by_each_update():
    """Each update's loss and gradient are computed with the schedule's value for its step."""
    made = model()
    kernel, bias = (ops.convert_to_numpy(w).astype("f8") for w in made.trainable_weights)
    losses = Losses()
    fit(made, FollowSchedule(made.layers[1].factor, linear_annealing(4), 1), losses, epochs=2)
    expected = []
    for step in range(1, 7):
        factor = min(1, step / 4)
        output = factor * (kernel.sum() + bias[0])
        expected.append(output**2)
        kernel -= 0.1 * 2 * output * factor
        bias -= 0.1 * 2 * output * factor
    np.testing.assert_allclose(losses.losses, expected, rtol=1e-4, atol=1e-6)
    assert float(made.layers[1].factor.value) == 1.0


def test_annealing_schedules_equal_their_formulas():
    for step in (0, 1, 50, 99, 100, 250, 10_000):
        assert float(linear_annealing(200, 0.5, 0.0)(step)) == pytest.approx(
            np.interp(step, [0, 200], [0.5, 0.0])
        )
        assert float(logistic_annealing(100, 0.05)(step)) == pytest.approx(
            1 / (1 + np.exp(-0.05 * (step - 100))), rel=1e-5
        )
        # Fu et al.: tau = mod(t - 1, ceil(T / M)) / (T / M), where the first update has t = 1.
        tau = (step % 100) / 100
        expected = 1.0 if step >= 400 else min(1, tau / 0.5)
        assert float(cyclical_annealing(400, 4, 0.5)(step)) == pytest.approx(expected)


def keeper():
    """Returns a callback and the list in which it stores the trainable weights of each update."""
    states = []

    class Keep(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            states.append([ops.convert_to_numpy(w.value) for w in self.model.trainable_weights])

    return Keep(), states


def test_average_weights_averages_the_last_n_states():
    made = model()
    made.layers[1].factor.assign(1.0)
    keep, states = keeper()
    callback = AverageWeights(count=2, every=2)
    assert callback.average is None
    fit(made, keep, callback, epochs=2)
    for i, weight in enumerate(made.trainable_weights):
        expected = (states[3][i].astype("f8") + states[5][i]) / 2
        np.testing.assert_allclose(ops.convert_to_numpy(weight.value), expected, rtol=1e-7)
        np.testing.assert_allclose(callback.average[i], expected, rtol=1e-7)
    before = [ops.convert_to_numpy(w.value) for w in made.trainable_weights]
    fit(made, AverageWeights(count=2, every=1, set_at_end=False))
    after = [ops.convert_to_numpy(w.value) for w in made.trainable_weights]
    assert not np.array_equal(before[0], after[0])


@pytest.mark.parametrize(
    ("values", "best"),
    [
        ([3.0, 9.0, 1.0, 7.0, 8.0, 2.0], [2, 4, 5]),
        # The earlier of equal values wins; NaN never counts as one of the best.
        ([5.0, 5.0, 5.0, 5.0, np.nan, 5.0], [1, 2, 3]),
        ([np.nan, 1.0, np.nan, np.nan, 2.0, np.nan], [2, 5]),
        ([-np.inf, 1.0, 1.0, 4.0, np.inf, 1.0], [2, 4, 5]),
    ],
)
def test_average_weights_averages_the_best_n_states(values, best):
    made = model()
    made.layers[1].factor.assign(1.0)
    keep, states = keeper()
    validation = Validation(lambda step: {"bleu": values[step - 1]}, 1, "bleu")
    judged = AverageWeights(3, 1, judge=lambda step: validation.results["bleu"])
    fit(made, keep, validation, judged, epochs=2)
    assert judged.kept == best
    for i, weight in enumerate(made.trainable_weights):
        expected = np.mean([states[step - 1][i].astype("f8") for step in best], axis=0)
        np.testing.assert_allclose(ops.convert_to_numpy(weight.value), expected, rtol=1e-6)


def test_validation_reports_every_evaluation():
    seen = []
    fit(
        model(),
        Validation(lambda step: {"bleu": -step}, 2, "bleu", report=lambda *a: seen.append(a)),
    )
    assert seen == [(2, {"bleu": -2}), (3, {"bleu": -3})]


def test_sample_translations_sees_the_weights_of_the_update(capsys):
    made = model()
    made.layers[1].factor.assign(1.0)
    seen = []

    def translate(sources):
        return [float(ops.convert_to_numpy(made(INPUTS[:1]))[0, 0]) for _ in sources]

    fit(
        made,
        SampleTranslations(
            translate, ["a", "b"], every=2, report=lambda *found: seen.append(found)
        ),
        SampleTranslations(lambda lines: [s.upper() for s in lines], ["ab"], 3, ["AB"]),
    )
    assert [step for step, _ in seen] == [2, 3]
    assert seen[0][1][0] != seen[1][1][0]
    assert seen[1][1][1] == pytest.approx(float(ops.convert_to_numpy(made(INPUTS[:1]))[0, 0]))
    said = capsys.readouterr().err
    assert said == "step 3, line 1\n  source    ab\n  reference AB\n  model     AB\n"


def read_grey_png(content):
    """Decodes a PNG by the specification: signature, chunk checksums, unfiltered rows."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, {}
    while place < len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        name, data = content[place + 4 : place + 8], content[place + 8 : place + 8 + length]
        (checksum,) = struct.unpack(">I", content[place + 8 + length : place + 12 + length])
        assert checksum == zlib.crc32(name + data)
        chunks[name] = data
        place += 12 + length
    columns, rows, depth, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, kind) == (8, 0) and list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(rows, columns + 1)
    assert not lines[:, 0].any()
    return lines[:, 1:]


def test_attention_snapshots_writes_png_files_of_the_attention(tmp_path):
    attention = np.array([[1.0, 0.0, 0.0], [0.25, 0.5, 0.25]])
    callback = AttentionSnapshots(lambda: [attention, attention.T], tmp_path / "a", every=2, cell=3)
    fit(model(), callback, epochs=2)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == [f"step-{step:08d}-{i}.png" for step in (2, 4, 6) for i in (0, 1)]
    pixels = read_grey_png((tmp_path / "a" / names[0]).read_bytes())
    assert pixels.shape == (6, 9)
    expected = np.round(255 * (1 - attention))
    np.testing.assert_array_equal(pixels[1::3, 1::3], expected)
    np.testing.assert_array_equal(pixels[::3, ::3], expected)
    random = np.random.default_rng(1).integers(0, 256, (7, 5), np.uint8)
    np.testing.assert_array_equal(read_grey_png(grey_png(random)), random)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: FollowSchedule(None, 0.5), TypeError, "`schedule` must be a function"),
        (lambda: AverageWeights(0, 1), ValueError, "`count` must be a positive integer"),
        (lambda: SampleTranslations(list, [], 0), ValueError, "`every` must be a positive"),
        (lambda: SampleTranslations(list, ["a"], 1, []), ValueError, "equally many"),
        (lambda: AttentionSnapshots(list, "x", 1, 0), ValueError, "`cell` must be a positive"),
        (lambda: cyclical_annealing(10, rise=0), ValueError, "`rise` must be above 0"),
        (lambda: linear_annealing(0), ValueError, "updates must be positive"),
    ],
)
def test_callbacks_and_schedules_reject_invalid_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()
