"""Gradient accumulation equals training on large batches, and all counters count updates."""

import json
import random
import signal

import keras
import numpy as np
import pytest
from keras import ops
from training.toy import (
    LETTERS,
    assert_equal_tensors,
    quiet_train,
    tensors_of,
    toy_settings,
)

from keras_seq.data import BatchStream, TokenCorpus, write_corpus
from keras_seq.losses import SequenceCrossEntropy
from keras_seq.models import Transformer
from keras_seq.schedules import InverseSquareRoot
from keras_seq.settings import SettingsError, load_settings
from keras_seq.training import OncePerUpdate, SkippingAdam, loop
from keras_seq.training.feed import fit_batch, fit_batches

# `SkippingAdam` reaches this EMA momentum at the second update, so its averages equal Keras'.
OPTIONS = {"use_ema": True, "ema_momentum": 0.1, "global_clipnorm": 1.0, "beta_2": 0.98}
GRADIENTS = np.random.default_rng(0).normal(size=(12, 2, 3)).astype("float32")


def adam(kind=keras.optimizers.Adam, **options):
    optimizer = kind(InverseSquareRoot(0.1, 3), **OPTIONS, **options)
    weights = [keras.Variable(np.ones(3, "float32")), keras.Variable(np.zeros(3, "float32"))]
    optimizer.build(weights)
    return optimizer, weights


def numbers(variables):
    return [ops.convert_to_numpy(variable.value) for variable in variables]


@pytest.mark.jax
def test_skipping_adam_with_micro_batches_equals_adam_on_mean_gradients():
    """Compares weights, moments, averages, the schedule and the number of updates."""
    optimizer, weights = adam(SkippingAdam, micro_batches=3)
    expected, expected_weights = adam()
    for i, gradient in enumerate(GRADIENTS):
        before = numbers(weights)
        optimizer.apply([ops.convert_to_tensor(part) for part in gradient])
        if i % 3 < 2:
            np.testing.assert_array_equal(numbers(weights), before)
        else:
            mean = GRADIENTS[i - 2 : i + 1].mean(axis=0)
            expected.apply([ops.convert_to_tensor(part) for part in mean])
        np.testing.assert_allclose(numbers(weights), numbers(expected_weights), atol=1e-6)
    for variable, other in zip(optimizer.variables, expected.variables, strict=False):
        np.testing.assert_allclose(variable.numpy(), other.numpy(), atol=1e-6)
    assert int(ops.convert_to_numpy(optimizer.iterations)) == 4
    np.testing.assert_allclose(float(optimizer.learning_rate), float(expected.learning_rate))


@pytest.mark.jax
@pytest.mark.parametrize("place", [3, 4, 5])
def test_non_finite_micro_batch_skips_only_its_own_update(place):
    spoiled = GRADIENTS.copy()
    spoiled[place, 0, 1] = np.nan
    optimizer, weights = adam(SkippingAdam, micro_batches=3)
    expected, expected_weights = adam(SkippingAdam, micro_batches=3)
    for i, gradient in enumerate(spoiled):
        optimizer.apply([ops.convert_to_tensor(part) for part in gradient])
        if not 3 <= i < 6:
            expected.apply([ops.convert_to_tensor(part) for part in gradient])
        if i == 5:
            assert (int(optimizer.skipped), int(optimizer.skipped_in_row)) == (1, 1)
    np.testing.assert_array_equal(numbers(weights), numbers(expected_weights))
    assert (int(optimizer.skipped), int(optimizer.skipped_in_row)) == (1, 0)
    assert int(ops.convert_to_numpy(optimizer.iterations)) == 3


def test_micro_batches_option_round_trips_and_rejects_bad_values():
    optimizer = SkippingAdam(0.25, micro_batches=4)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert again.micro_batches == 4
    for wrong in (0, 1.5):
        with pytest.raises(ValueError, match=f"positive integer, received {wrong}"):
            SkippingAdam(micro_batches=wrong)
    with pytest.raises(ValueError, match="received 2: use `micro_batches`"):
        SkippingAdam(gradient_accumulation_steps=2)


class Fixed:
    """A stream of fixed batches with the interface of `BatchStream`."""

    def __init__(self, batches):
        self.batches = batches

    def batch(self, k):
        return self.batches[k]

    def total_weight(self, k):
        batch = self.batches[k]
        return float(((batch["target_output"] != 0).sum(axis=1) * batch["weight"]).sum())


def random_batch(generator, rows, source_steps, target_steps):
    """Returns a random batch padded at the right; some target rows may be all padding."""
    source = generator.integers(4, 20, (rows, source_steps)).astype("int32")
    target = generator.integers(4, 20, (rows, target_steps)).astype("int32")
    for i in range(rows):
        target[i, generator.integers(0, target_steps + 1) :] = 0
    begin = np.full((rows, 1), 2, "int32")
    return {
        "source": source,
        "target_input": np.concatenate([begin, target[:, :-1]], axis=1),
        "target_output": target,
        "weight": generator.uniform(0, 3, rows).astype("float32"),
    }


def stacked(batches):
    """Returns one batch of all rows, padded to the longest row."""

    def padded(name):
        arrays = [batch[name] for batch in batches]
        steps = max(array.shape[1] for array in arrays)
        return np.concatenate(
            [np.pad(array, [(0, 0), (0, steps - array.shape[1])]) for array in arrays]
        )

    whole = {name: padded(name) for name in ("source", "target_input", "target_output")}
    return {**whole, "weight": np.concatenate([batch["weight"] for batch in batches])}


def trained(batches, micro_batches):
    """Returns the weights after all updates and the loss of each batch."""
    keras.utils.set_random_seed(1)
    model = Transformer(20, 20, 1, 1, units=8, feedforward_units=8, num_heads=2, dropout=0.0)
    # Key biases have no effect, so their gradients are rounding noise of about 1e-10. With its
    # usual epsilon, Adam would make full-size steps of that noise.
    optimizer = SkippingAdam(0.01, epsilon=1e-3, global_clipnorm=1.0, micro_batches=micro_batches)
    model.compile(optimizer, SequenceCrossEntropy(0.1, "sum"), jit_compile="auto")
    stream, losses = Fixed(batches), []
    for update in range(len(batches) // micro_batches):
        for batch in fit_batches(stream, update, micro_batches):
            losses.append(float(model.train_on_batch(*batch)))
            model.reset_metrics()
    return model.get_weights(), losses


@pytest.mark.jax
@pytest.mark.slow
def test_micro_batches_train_the_same_weights_as_one_large_batch():
    """Compares two updates of three unequal micro-batches with updates on two large batches."""
    generator = np.random.default_rng(3)
    # JAX compiles every shape, so use only one.
    shapes = [(2, 4, 9), (7, 6, 3), (1, 5, 2), (4, 4, 4), (3, 9, 6), (5, 2, 5)]
    shapes = [(3, 4, 5)] * 6 if keras.backend.backend() == "jax" else shapes
    parts = [random_batch(generator, *shape) for shape in shapes]
    assert len({np.count_nonzero(part["target_output"]) for part in parts}) > 3
    weights, losses = trained(parts, 3)
    expected, large = trained([stacked(parts[:3]), stacked(parts[3:])], 1)
    for weight, other in zip(weights, expected, strict=True):
        np.testing.assert_allclose(weight, other, atol=1e-6)
    # The mean loss of the micro-batches is the loss of the large batch.
    np.testing.assert_allclose(np.mean(losses[:3]), large[0], rtol=1e-5)
    np.testing.assert_allclose(np.mean(losses[3:]), large[1], rtol=1e-5)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    generator = np.random.default_rng(1)
    pairs = [
        ([5] * int(source), [6] * int(target))
        for source, target in generator.integers(1, 9, (60, 2))
    ]
    folder = tmp_path_factory.mktemp("corpus") / "corpus"
    write_corpus(folder, pairs, max_source_length=10, max_target_length=10)
    return TokenCorpus.open(folder)


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_fit_batches_weights_average_over_the_tokens_of_an_update(corpus, micro_batches):
    stream = BatchStream(corpus, batch_tokens=30, seed=1, shapes="buckets")
    for update in (0, 2, stream.batches_per_epoch):
        batches = list(fit_batches(stream, update, micro_batches))
        tokens = sum(np.count_nonzero(targets) for _, targets, _ in batches)
        for k, (inputs, targets, weights) in enumerate(batches, update * micro_batches):
            np.testing.assert_array_equal(targets, stream.batch(k)["target_output"])
            np.testing.assert_array_equal(inputs["target"], stream.batch(k)["target_input"])
            assert (weights.dtype, weights.shape) == (np.float32, (len(targets),))
            np.testing.assert_allclose(weights, micro_batches / tokens, rtol=1e-6)
    assert (fit_batch(stream, 4)[1] == stream.batch(4)["target_output"]).all()


def test_fit_batch_weights_divide_by_the_tokens_of_all_hosts(corpus):
    hosts = [BatchStream(corpus, batch_tokens=60, seed=1, host=i, hosts=2) for i in range(2)]
    parts = [fit_batch(stream, 1) for stream in hosts]
    tokens = sum(np.count_nonzero(targets) for _, targets, _ in parts)
    for _, _, weights in parts:
        np.testing.assert_allclose(weights, 1 / tokens, rtol=1e-6)


def test_fit_batch_with_all_zero_row_weights_gives_zero_weights():
    batch = random_batch(np.random.default_rng(0), 3, 4, 4)
    _, _, weights = fit_batch(Fixed([{**batch, "weight": np.zeros(3, "float32")}]), 0)
    assert weights.tolist() == [0, 0, 0]


class Recorder(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seen = []

    def on_epoch_begin(self, epoch, logs=None):
        self.seen.append(("epoch", epoch))

    def on_train_batch_begin(self, batch, logs=None):
        self.seen.append(("begin", batch))

    def on_train_batch_end(self, batch, logs=None):
        iterations = int(ops.convert_to_numpy(self.model.optimizer.iterations))
        self.seen.append(("end", batch, iterations, "loss" in logs))


def test_once_per_update_calls_inner_callbacks_once_per_update():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile(SkippingAdam(0.1, micro_batches=2), "mse")
    x, y = np.ones((12, 3), "float32"), np.ones((12, 1), "float32")
    recorder = Recorder()
    options = {"batch_size": 3, "shuffle": False, "verbose": 0}
    model.fit(x, y, epochs=2, callbacks=[OncePerUpdate([recorder], 2)], **options)
    assert recorder.params["steps"] == 2
    epochs = [
        [("epoch", 0), ("begin", 0), ("end", 0, 1, True), ("begin", 1), ("end", 1, 2, True)],
        [("epoch", 1), ("begin", 0), ("end", 0, 3, True), ("begin", 1), ("end", 1, 4, True)],
    ]
    assert recorder.seen == epochs[0] + epochs[1]
    with pytest.raises(ValueError, match=r"4 batches, expected a multiple of `micro_batches` \(3"):
        model.fit(x, y, callbacks=[OncePerUpdate([recorder], 3)], **options)
    with pytest.raises(ValueError, match="positive integer, received 0"):
        OncePerUpdate([], 0)


def test_effective_batch_tokens_setting_determines_micro_batches():
    def micro_batches(batch, effective):
        values = {"training.batch_tokens": batch, "training.effective_batch_tokens": effective}
        return load_settings(overrides=values).training.micro_batches

    assert micro_batches(4096, "none") == 1
    assert [micro_batches(100, tokens) for tokens in (100, 101, 200, 201)] == [1, 2, 2, 3]
    with pytest.raises(SettingsError) as error:
        micro_batches(100, 99)
    assert str(error.value) == (
        "training.effective_batch_tokens: received 99, expected at least "
        "training.batch_tokens (100)"
    )


# Line lengths vary: the batch with the most tokens does not have the largest attention maps.
OVERRIDES = {
    "model__dropout": 0.3,
    "training__batch_tokens": 100,
    "training__effective_batch_tokens": 250,
    "training__ema": 0.5,
    "training__schedule": "inverse_sqrt",
    "training__warmup_steps": 5,
    "training__validate_every": 4,
    "training__checkpoint_every": 3,
    "training__patience": 0,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    generator = random.Random(1)
    for name, count in (("train", 100), ("valid", 4)):
        lines = []
        for _ in range(count):
            line = " ".join(generator.choice(LETTERS) for _ in range(generator.randint(1, 8)))
            lines.append(f"{line}\t{line}\n")
        (folder / f"{name}.tsv").write_text("".join(lines))
    return folder


def settings_of(folder, **overrides):
    return toy_settings(folder, **(OVERRIDES | overrides))


STEPS = 8


@pytest.fixture(scope="module")
def straight(folder):
    result, said = quiet_train(settings_of(folder, training__max_steps=STEPS), folder / "straight")
    assert result.steps == STEPS
    assert ", 3 an update\n" in said
    return folder / "straight"


def assert_same_training(run, expected):
    assert_equal_tensors(tensors_of(run, part="training"), tensors_of(expected, part="training"))


@pytest.mark.slow
def test_run_with_micro_batches_counts_steps_in_updates(folder, straight):
    arrays = tensors_of(straight, part="training")
    iterations = next(array for name, array in arrays.items() if name.endswith("/iteration"))
    assert int(iterations) == STEPS
    saved = sorted(path.name for path in (straight / "checkpoints").glob("step-*"))
    # Every third step, each validation step and the last step.
    assert saved == [f"step-{step:08}" for step in (3, 4, 6, 8)]
    lines = [json.loads(line) for line in (straight / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if line["kind"] == "validation"] == [4, 8]
    # Gradient sums carry no information between updates, so checkpoints omit them.
    assert not [name for name in arrays if "gradient_sum" in name or "micro_batch" in name]
    # Each seed generator advances once per batch, so three times per update.
    seeds = {name: array for name, array in arrays.items() if name.startswith("seed/")}
    assert {int(seed[1]) % (3 * STEPS) for seed in seeds.values()} == {0}


@pytest.mark.slow
@pytest.mark.weekly
def test_resume_after_a_signal_within_an_update_reproduces_the_training_state(
    folder, straight, monkeypatch
):
    """After SIGTERM at the second of three batches, the checkpoint holds the previous update."""
    within = loop.TrainingLoop._within_update
    batches = 0

    def signalled(self, batch, logs=None):
        nonlocal batches
        batches += 1
        if batches == 5 * 3 + 2:
            # The signal handler does the same; tests/faults sends real signals to processes.
            self.stop.agreed = signal.SIGTERM
        within(self, batch, logs)

    monkeypatch.setattr(loop.TrainingLoop, "_within_update", signalled)
    run, settings = folder / "signalled", settings_of(folder, training__max_steps=STEPS)
    with pytest.raises(SystemExit) as stop:
        quiet_train(settings, run)
    assert stop.value.code == 143
    assert (run / "checkpoints" / "latest").read_text().strip() == "step-00000005"
    quiet_train(settings, run)
    assert_same_training(run, straight)


@pytest.mark.slow
def test_max_epochs_limit_rounds_up_to_a_full_update(folder):
    """The number of batches per epoch is not a multiple of three."""
    settings = settings_of(folder, training__max_epochs=2, training__max_steps="none")
    result, said = quiet_train(settings, folder / "epochs")
    batches = int(said.split(" batches an epoch")[0].split()[-1])
    assert batches % 3
    assert result.steps == -(-2 * batches // 3)
