"""Half precision: float32 parts, accuracy, loss scaling and the automatic choice of precision."""

import contextlib
import json

import keras
import numpy as np
import pytest
from conformance import steps
from differentiation import gradients
from keras import ops
from training.toy import assert_equal_tensors, killed_after, quiet_train, tensors_of, toy_settings

import keras_seq
from keras_seq import backend
from keras_seq.callbacks import NanGuard
from keras_seq.cluster import Cluster
from keras_seq.layers import SinusoidalPosition, TokenEmbedding
from keras_seq.losses import SequenceCrossEntropy
from keras_seq.models import RecurrentSeq2Seq, Transformer
from keras_seq.preparation import prepare_run
from keras_seq.run import Run
from keras_seq.run.models import build_model, load_model
from keras_seq.search import beam_search
from keras_seq.settings import load_settings
from keras_seq.training import SkippingAdam
from keras_seq.training.optimizer import compile_model, make_optimizer
from keras_seq.training.precision import Device, choose_precision, resolve_precision, this_device

HALF = ["mixed_bfloat16", "mixed_float16"]
# A few rounding errors of 2^-8 and 2^-11.
TOLERANCE = {"mixed_bfloat16": 0.1, "mixed_float16": 0.02}


@contextlib.contextmanager
def global_policy(name):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def transformer(dtype=None, vocabulary=20, **options):
    sizes = {"units": 16, "feedforward_units": 32, "num_heads": 2, "dropout": 0.0}
    return Transformer(
        vocabulary, vocabulary, 1, 1, share_embeddings=True, dtype=dtype, **{**sizes, **options}
    )


def recurrent(dtype=None, vocabulary=20, **options):
    sizes = {"embedding_units": 8, "encoder_units": 8, "decoder_units": 16, "attention_units": 8}
    return RecurrentSeq2Seq(
        vocabulary, vocabulary, dropout=0.0, dtype=dtype, **{**sizes, **options}
    )


FAMILIES = {
    "transformer": transformer,
    "gru": recurrent,
}
every_family = pytest.mark.parametrize("make", FAMILIES.values(), ids=FAMILIES)
every_half = pytest.mark.parametrize("half", HALF)


def ids(rows, steps, generator, vocabulary=20):
    array = generator.integers(4, vocabulary, (rows, steps)).astype("int32")
    for i in range(rows):
        array[i, generator.integers(2, steps + 1) :] = 0
    return array


def dtypes(structure):
    return [keras.backend.standardize_dtype(leaf.dtype) for leaf in keras.tree.flatten(structure)]


@pytest.mark.slow
@every_half
@pytest.mark.parametrize("make", [transformer, recurrent])
def test_model_with_a_dtype_matches_one_under_the_global_policy(make, half):
    """Outputs, memory, state and decoder steps are bit-identical; all weights stay float32."""
    model = make(half)
    with global_policy(half):
        other = make()
    other.set_weights(model.get_weights())
    assert set(dtypes(model.weights)) == {"float32"}
    source = target = ids(3, 5, np.random.default_rng(0))
    inputs = {"source": source, "target": target}
    np.testing.assert_array_equal(model.predict(inputs), other.predict(inputs))
    results = []
    for each in (model, other):
        memory = each.encoder(source)
        state = each.initial_state(memory, 2, 3)
        token, position = ops.full((3, 2), 2, dtype="int32"), ops.convert_to_tensor(0)
        stepped = each.decoder_step(
            {"token": token, "position": position, "state": state, "memory": memory}
        )
        results.append((memory, state, stepped))
        assert dtypes(stepped["logits"]) == ["float32"]
        assert set(dtypes(memory)) == {"bool", half.removeprefix("mixed_")}
        assert dtypes(stepped["state"]) == dtypes(state)
    for one, two in zip(*map(keras.tree.flatten, results), strict=True):
        one, two = (ops.convert_to_numpy(ops.cast(each, "float32")) for each in (one, two))
        np.testing.assert_array_equal(one, two)
    again = type(model).from_config(json.loads(json.dumps(model.get_config())))
    assert again.dtype_policy.name == half
    assert all(layer.dtype_policy.name == half for layer in again.layers if layer.weights)


@pytest.mark.slow
@every_half
@every_family
def test_decoder_steps_match_full_decoding_in_half_precision(make, half):
    model = make(half)
    generator = np.random.default_rng(1)
    source, target = ids(2, 5, generator), generator.integers(4, 20, (2, 4)).astype("int32")
    whole = ops.convert_to_numpy(model({"source": source, "target": target}))
    stepwise = steps.model(model, {"source": source, "target": ops.convert_to_tensor(target)})
    error = np.abs(ops.convert_to_numpy(stepwise) - whole).max()
    assert error <= TOLERANCE[half] * max(1, np.abs(whole).max())


@pytest.mark.jax
@every_half
def test_sinusoidal_positions_stay_distinct_in_half_precision(half):
    """Checks 2,000 positions, of which bfloat16 can represent fewer than 700."""
    encoded = SinusoidalPosition(dtype=half)(ops.zeros((1, 2000, 64)))
    rows = ops.convert_to_numpy(ops.cast(encoded, "float32"))[0]
    assert len(np.unique(rows, axis=0)) == 2000
    exact = np.arange(2000)[:, None] / 10000 ** (np.arange(0, 64, 2) / 64)
    np.testing.assert_allclose(rows[:, ::2], np.sin(exact), atol=5e-3)
    counted = ops.convert_to_numpy(ops.cast(ops.cast(np.arange(2000.0), "bfloat16"), "float32"))
    assert len(np.unique(counted)) < 700


@pytest.mark.jax
@every_half
def test_embedding_gradient_sums_3000_lookups_exactly_in_half_precision(half):
    embedding = TokenEmbedding(10, 4, dtype=half)
    word = ops.full((30, 100), 5, dtype="int32")
    assert dtypes(embedding(word)) == [half.removeprefix("mixed_")]
    _, (gradient,) = gradients(
        lambda: ops.sum(ops.cast(embedding(word), "float32")), [], embedding.trainable_variables
    )
    expected = np.zeros((10, 4))
    expected[5] = 3000 * 2  # the square root of 4 units
    np.testing.assert_array_equal(gradient, expected)


def loss_gradients(model, batch, scale=1.0):
    source, target, weights = batch
    loss = SequenceCrossEntropy(0.1, "sum")
    begin = np.concatenate([np.full((len(target), 1), 2, "int32"), target[:, :-1]], axis=1)

    def of():
        return loss(target, model({"source": source, "target": begin}), weights) * scale

    _, by_variable = gradients(of, [], model.trainable_variables)
    value = float(ops.convert_to_numpy(of()))
    return value / scale, {
        variable.path: gradient.astype("float32") / scale
        for variable, gradient in zip(model.trainable_variables, by_variable, strict=True)
    }


@pytest.mark.jax
@pytest.mark.slow
@pytest.mark.weekly
@every_half
@every_family
def test_half_precision_loss_and_gradients_are_close_to_float32(make, half):
    """Most of the 2,400 tokens of the batch are one word.

    A bfloat16 sum over thousands of terms would stop growing long before the last term.
    """
    generator = np.random.default_rng(2)
    source, target = (ids(200, 12, generator, 30) for _ in range(2))
    for array in (source, target):
        array[(array > 0) & (generator.uniform(size=array.shape) < 0.7)] = 5
    weights = np.full(200, 1 / np.count_nonzero(target), "float32")
    keras.utils.set_random_seed(3)
    full, model = make(vocabulary=30), make(half, vocabulary=30)
    model.set_weights(full.get_weights())
    expected_loss, expected = loss_gradients(full, (source, target, weights))
    scale = 2.0**15 if half == "mixed_float16" else 1.0
    loss, found = loss_gradients(model, (source, target, weights), scale)
    np.testing.assert_allclose(loss, expected_loss, rtol=2e-3)
    norm = np.sqrt(sum(np.square(gradient).sum() for gradient in expected.values()))
    for (path, gradient), other in zip(expected.items(), found.values(), strict=True):
        # Some gradients are only rounding noise, such as the gradient of the key biases.
        error = np.linalg.norm(other - gradient) / max(np.linalg.norm(gradient), 1e-3 * norm)
        assert error < 0.06, (path, error)


GRADIENTS = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="theirs needs `fit` there")
def test_loss_scale_changes_like_that_of_keras():
    """Each overflow halves the scale; four updates without an overflow double the scale."""
    ours = SkippingAdam(0.1, initial_loss_scale=2.0**10, loss_scale_growth_steps=4)
    plain = SkippingAdam(0.1)
    theirs = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.Adam(0.1), initial_scale=2.0**10, dynamic_growth_steps=4
    )
    weights = [keras.Variable(np.ones(3, "float32")) for _ in range(3)]
    for optimizer, weight in zip((ours, theirs, plain), weights, strict=True):
        optimizer.build([weight])
    scales = []
    for i, gradient in enumerate(GRADIENTS):
        overflow = i in (3, 4, 5, 20, 39)
        for optimizer in (ours, theirs):
            scaled = np.full(3, np.inf) if overflow else gradient * float(optimizer.scale_loss(1.0))
            optimizer.apply([ops.convert_to_tensor(scaled.astype("float32"))])
        if not overflow:
            plain.apply([ops.convert_to_tensor(gradient)])
        scales.append(float(ops.convert_to_numpy(ours.loss_scale)))
        assert scales[-1] == float(ops.convert_to_numpy(theirs.dynamic_scale))
    assert min(scales) == 2.0**7 and max(scales) > 2.0**10
    # Scaling by a power of two and back is exact.
    np.testing.assert_array_equal(weights[0].numpy(), weights[2].numpy())
    assert (int(ours.skipped), int(ours.skipped_in_row)) == (0, 0)
    assert int(ops.convert_to_numpy(ours.iterations)) == 35


@pytest.mark.jax
def test_non_finite_gradients_at_the_lowest_loss_scale_count_as_skipped():
    optimizer = SkippingAdam(0.1, initial_loss_scale=4.0)
    weight = keras.Variable(np.ones(3, "float32"))
    optimizer.build([weight])
    seen = []
    for _ in range(5):
        optimizer.apply([ops.full((3,), float("nan"))])
        seen.append((float(ops.convert_to_numpy(optimizer.loss_scale)), int(optimizer.skipped)))
    assert seen == [(2, 0), (1, 0), (1, 1), (1, 2), (1, 3)]
    assert int(optimizer.skipped_in_row) == 3
    assert weight.numpy().tolist() == [1, 1, 1]


def test_zero_gradients_do_not_grow_the_loss_scale_beyond_its_maximum():
    optimizer = SkippingAdam(0.1, initial_loss_scale=2.0**23, loss_scale_growth_steps=1)
    optimizer.build([keras.Variable(np.ones(3, "float32"))])
    for _ in range(3):
        optimizer.apply([ops.zeros((3,))])
    assert float(ops.convert_to_numpy(optimizer.loss_scale)) == 2.0**24


@pytest.mark.jax
def test_micro_batches_of_one_update_share_a_loss_scale():
    """The scale changes between updates, never within one."""
    ours = SkippingAdam(
        0.1, micro_batches=2, initial_loss_scale=8.0, loss_scale_growth_steps=1, use_ema=True
    )
    plain = SkippingAdam(0.1, micro_batches=2, use_ema=True)
    weights = [keras.Variable(np.ones(3, "float32")) for _ in range(2)]
    ours.build(weights[:1])
    plain.build(weights[1:])
    for i, gradient in enumerate(GRADIENTS[:8]):
        scale = float(ours.scale_loss(1.0))
        assert scale == 8.0 * 2 ** (i // 2)
        ours.apply([ops.convert_to_tensor(gradient * np.float32(scale))])
        plain.apply([ops.convert_to_tensor(gradient)])
    np.testing.assert_array_equal(weights[0].numpy(), weights[1].numpy())


def test_loss_scale_options_round_trip_and_reject_bad_values():
    optimizer = SkippingAdam(0.25, initial_loss_scale=8.0, loss_scale_growth_steps=7)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert again.get_config() == optimizer.get_config()
    assert (again.initial_loss_scale, again.loss_scale_growth_steps) == (8.0, 7)
    for wrong in (0.5, 2.0**25):
        with pytest.raises(ValueError, match=r"None or from 1 to 2 \*\* 24, received"):
            SkippingAdam(initial_loss_scale=wrong)
    with pytest.raises(ValueError, match="positive integer, received 0"):
        SkippingAdam(loss_scale_growth_steps=0)


class Scales(keras.callbacks.Callback):
    """Records the loss scale and the loss after each update."""

    def __init__(self):
        super().__init__()
        self.seen, self.losses = [], []

    def on_train_batch_end(self, batch, logs=None):
        # On JAX, reading `self.model` copies the variables from `fit` back into the model.
        self.seen.append(float(ops.convert_to_numpy(self.model.optimizer.loss_scale)))
        self.losses.append(float(logs["loss"]))


@pytest.mark.weekly
@pytest.mark.jax
@pytest.mark.slow
def test_float16_overflow_lowers_the_loss_scale_and_training_continues():
    """Overflows in real float16: the loss is about 3, and the largest float16 is 65,504."""
    keras.utils.set_random_seed(1)
    model = transformer("mixed_float16")
    optimizer = SkippingAdam(0.01, initial_loss_scale=2.0**24)
    model.compile(optimizer, SequenceCrossEntropy(), auto_scale_loss=False)
    assert model.optimizer is optimizer
    target = np.random.default_rng(0).integers(4, 20, (8, 6)).astype("int32")
    inputs = {"source": target, "target": np.roll(target, 1, axis=1)}
    scales, told = Scales(), []
    guard = NanGuard(limit=2, report=told.append, on_limit=told.append)
    model.fit(inputs, target, batch_size=8, epochs=30, verbose=0, callbacks=[scales, guard])
    falls = sum(a > b for a, b in zip([2.0**24, *scales.seen], scales.seen, strict=False))
    assert 2 <= falls < 15 and scales.seen[-1] == 2.0 ** (24 - falls)
    assert int(ops.convert_to_numpy(optimizer.iterations)) == 30 - falls
    assert (told, int(optimizer.skipped)) == ([], 0)
    assert scales.losses[-1] < 0.7 * scales.losses[0]


def test_only_float16_training_has_a_loss_scale():
    for precision, scale in (("float32", None), ("bfloat16", None), ("float16", 2.0**15)):
        sizes = {"model.units": 4, "model.feedforward_units": 4}
        settings = load_settings(overrides={"training.precision": precision, **sizes})
        assert make_optimizer(settings).initial_loss_scale == scale
        model = build_model(settings, 300, 300, "mixed_float16")
        compile_model(model, settings)
        assert isinstance(model.optimizer, SkippingAdam)


@pytest.mark.parametrize(
    ("device", "precision", "reason"),
    [
        (Device("tensorflow", "tpu"), "bfloat16", "a TPU"),
        (Device("jax", "gpu", (8, 0)), "bfloat16", "compute capability 8.0"),
        (Device("tensorflow", "gpu", (9, 0)), "bfloat16", "compute capability 9.0"),
        (Device("tensorflow", "gpu", (7, 5)), "float16", "compute capability 7.5"),
        (Device("jax", "gpu", (6, 1)), "float32", "compute capability 6.1"),
        (Device("jax", "gpu"), "float32", "not known"),
        (Device("tensorflow", "cpu", None, 1.4), "bfloat16", "1.4 times as fast"),
        (Device("tensorflow", "cpu", None, 1.3), "float32", "1.3 times as fast"),
        (Device("tensorflow", "cpu", None, 0.5), "float32", "0.5 times as fast"),
        (Device("jax", "cpu", None, 4.0), "float32", "JAX is slower"),
    ],
)
def test_choose_precision_depends_on_the_device(device, precision, reason):
    chosen, why = choose_precision(device, 128)
    assert chosen == precision
    assert reason in why


def test_narrow_model_stays_in_float32_on_a_cpu():
    assert choose_precision(Device("tensorflow", "cpu", None, 4.0), 127) == (
        "float32",
        "a model 127 wide is no faster in bfloat16 on a CPU",
    )
    assert choose_precision(Device("tensorflow", "gpu", (9, 0)), 127)[0] == "bfloat16"


def test_this_device_reports_backend_kind_and_bfloat16_gain():
    device = this_device()
    assert device.backend == keras.backend.backend()
    assert (device.kind, device.capability) == ("cpu", None) or device.kind in ("gpu", "tpu")
    assert (device.bfloat16_gain > 0) == (device.kind == "cpu" and device.backend == "tensorflow")


@pytest.mark.slow
@pytest.mark.weekly
def test_bfloat16_gain_measures_the_speed_of_matrix_products(monkeypatch):
    """The measured gain changes if products in one precision take a hundred times as long."""
    multiply = keras.ops.matmul
    slowed = []

    def slow(left, right):
        if keras.backend.standardize_dtype(left.dtype) not in slowed:
            return multiply(left, right)
        return sum(multiply(left, right) for _ in range(100))

    monkeypatch.setattr(backend, "name", lambda: "tensorflow")
    monkeypatch.setattr(keras.ops, "matmul", slow)
    gains = {}
    for slowed in (["float32"], ["bfloat16"]):
        gains[slowed[0]] = this_device().bfloat16_gain
    assert gains["float32"] > 100 * gains["bfloat16"]


class Hosts(Cluster):
    """A cluster whose first host has measured the gain `gain`."""

    def __init__(self, gain):
        self.gain = gain

    def of_first(self, values):
        assert len(values) == 1
        return np.array([self.gain])


@pytest.mark.parametrize("gain", [9.0, 0.1])
def test_all_hosts_choose_the_precision_measured_by_the_first(tmp_path, gain):
    settings = settings_of(tmp_path, "auto", 2, model__units=128)
    run = prepare_run(settings, tmp_path / "run")
    said = []
    resolve_precision(run, said.append, Hosts(gain))
    if keras.backend.backend() == "tensorflow":
        assert said == [
            f"precision {'bfloat16' if gain > 1 else 'float32'}: this CPU computes products in "
            f"bfloat16 {gain:.1f} times as fast"
        ]
    assert Run.open(run.path).settings.training.precision == run.settings.training.precision


STEPS = 6
OVERRIDES = {
    "model__dropout": 0.3,
    "training__ema": 0.5,
    "training__validate_every": 1000,
    "training__checkpoint_every": 3,
    "training__patience": 0,
}


def settings_of(folder, precision, max_steps, **overrides):
    return toy_settings(
        folder,
        training__precision=precision,
        training__max_steps=max_steps,
        **(OVERRIDES | overrides),
    )


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float16"])
@pytest.mark.weekly
def test_a_run_in_half_precision_resumes_to_the_last_bit(tmp_path, precision):
    straight, settings = tmp_path / "straight", settings_of(tmp_path, precision, STEPS)
    quiet_train(settings, straight)
    killed = killed_after(3, straight, tmp_path / "killed")
    _, said = quiet_train(settings, killed)
    assert "resuming after step 3\n" in said
    arrays, others = (
        tensors_of(run) | tensors_of(run, part="training") for run in (straight, killed)
    )
    assert_equal_tensors(arrays, others)
    for name, array in arrays.items():
        assert array.dtype != np.float16 and array.dtype.kind in "fiu", name
    scales = [array for name, array in arrays.items() if name.endswith("/loss_scale")]
    counts = [array for name, array in arrays.items() if name.endswith("/loss_scale_steps")]
    if precision == "float16":
        assert float(scales[0]) <= 2.0**15 and int(counts[0]) > 0
    else:
        assert not scales
    # A loaded model computes in float32, whatever the precision of the training was.
    model = load_model(Run.open(tmp_path / "straight"))
    assert model.dtype_policy.name == "float32"
    assert keras_seq.Translator.load(tmp_path / "straight")(["a b c"])


@pytest.mark.slow
@pytest.mark.weekly
def test_automatic_precision_is_chosen_only_once_per_run(tmp_path):
    # The toy model has 16 units.
    chosen, why = choose_precision(this_device(), 16)
    run = tmp_path / "run"
    _, said = quiet_train(settings_of(tmp_path, "auto", 2), run)
    assert f"precision {chosen}: {why}\n" in said
    assert Run.open(run).settings.training.precision == chosen
    # A run that started with another precision, as on another device, keeps its precision.
    text = (run / "settings.toml").read_text()
    elsewhere = "float32" if chosen == "bfloat16" else "bfloat16"
    line = 'precision = "{}"\n'
    (run / "settings.toml").write_text(text.replace(line.format(chosen), line.format(elsewhere)))
    result, said = quiet_train(settings_of(tmp_path, "auto", 3), run)
    assert result.steps == 3 and f"precision {chosen}: " not in said
    # A message says that the precision is slower on this device.
    slower = f"precision {elsewhere}: {chosen} is probably faster: {why}\n"
    assert (slower in said) == (elsewhere != "float32")
    assert Run.open(run).settings.training.precision == elsewhere
    message = f"training.precision {elsewhere} -> float16"
    with pytest.raises(keras_seq.InputError, match=message):
        quiet_train(settings_of(tmp_path, "float16", 4), run)


@pytest.mark.slow
@pytest.mark.weekly
def test_half_precision_training_ends_close_to_the_float32_loss():
    """Sixty updates on a copying task with dropout; random guesses have a loss of 2.8."""
    generator = np.random.default_rng(0)
    target = ids(60 * 16, 4, generator)
    begin = np.concatenate([np.full((len(target), 1), 2, "int32"), target[:, :-1]], axis=1)
    losses = {}
    for policy, scale in (("float32", None), ("mixed_bfloat16", None), ("mixed_float16", 2.0**15)):
        keras.utils.set_random_seed(1)
        model = transformer(policy, dropout=0.1, seed=1)
        optimizer = SkippingAdam(0.02, initial_loss_scale=scale)
        model.compile(optimizer, SequenceCrossEntropy(), auto_scale_loss=False)
        inputs = {"source": target, "target": begin}
        model.fit(inputs, target, batch_size=16, verbose=0, shuffle=False)
        losses[policy] = model.evaluate(inputs, target, batch_size=400, verbose=0)
    assert losses["float32"] < 2.5
    for half in HALF:
        assert abs(losses[half] - losses["float32"]) < 0.1 * losses["float32"], losses


@every_half
@pytest.mark.parametrize("make", [transformer, recurrent])
def test_beam_search_scores_are_float32_in_half_precision(make, half):
    """Scores are summed in float32, so most have no exact half-precision value."""
    source = ids(4, 5, np.random.default_rng(0))
    result = beam_search(make(half), source, beam_size=3, n_best=3, max_length=6)
    assert dtypes(result.scores) == ["float32"]
    scores = ops.convert_to_numpy(result.scores)
    rounded = ops.cast(ops.cast(scores, half.removeprefix("mixed_")), "float32")
    assert np.mean(scores != ops.convert_to_numpy(rounded)) > 0.8
