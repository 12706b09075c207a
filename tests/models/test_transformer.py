"""The Transformer compared with numpy, whole targets and single steps."""

import functools
import json

import keras
import numpy as np
import pytest
import reference_transformer as reference
from differentiation import gradients, quick
from keras import ops

from keras_seq.losses import SequenceCrossEntropy
from keras_seq.models import Transformer

HEADS, VOCABULARY = 2, 12
SIZES = {
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "units": 8,
    "feedforward_units": 10,
    "num_heads": HEADS,
}
ONE_LAYER = {"num_encoder_layers": 1, "num_decoder_layers": 1}
# Rows of different lengths on both sides; 3 ends a source, 2 starts a target.
SOURCE = np.array([[5, 9, 4, 3], [7, 3, 0, 0], [3, 0, 0, 0]], "int32")
TARGET = np.array([[2, 4, 4, 0, 0], [2, 11, 10, 9, 8], [2, 0, 0, 0, 0]], "int32")
VARIANTS = {
    "pre": {"share_embeddings": True},
    "post": {"norm": "post", "activation": "gelu"},
}


def made(source_vocabulary_size=VOCABULARY, **arguments):
    model = Transformer(source_vocabulary_size, VOCABULARY, **SIZES | arguments)
    reference.randomize(model)
    return model


@functools.cache
def small():
    """One layer on each side, shared by the tests that do not change it."""
    return made(**ONE_LAYER)


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request):
    return request.param, made(**VARIANTS[request.param])


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def logits_of(model, source=SOURCE, target=TARGET):
    return numpy_of(model.predict_on_batch({"source": source, "target": target}))


def expected_logits(name, model, source=SOURCE, target=TARGET):
    return reference.transformer(
        source,
        target,
        reference.named_arrays(model),
        HEADS,
        VARIANTS[name].get("norm", "pre"),
        reference.gelu if name == "post" else reference.relu,
    )


def test_transformer_equals_numpy(variant):
    logits = logits_of(variant[1])
    real = TARGET != 0
    assert logits.shape == (3, 5, VOCABULARY)
    np.testing.assert_allclose(logits[real], expected_logits(*variant)[real], atol=2e-5)
    assert np.isfinite(logits).all()


def test_transformer_with_two_vocabulary_sizes_equals_numpy():
    model = made(source_vocabulary_size=30, norm="post", activation="gelu", **ONE_LAYER)
    source = SOURCE + 15 * (SOURCE > 3)
    real = TARGET != 0
    np.testing.assert_allclose(
        logits_of(model, source)[real],
        expected_logits("post", model, source)[real],
        atol=2e-5,
    )


@pytest.mark.parametrize("room", [2, 5])
def test_reordered_hypotheses_equal_numpy(variant, room):
    """Steps as in a search, with random parents at each step."""
    name, model = variant
    beam, steps, rows = 3, 5, len(SOURCE)
    memory = quick(model.encoder)(SOURCE)
    state = model.initial_state(memory, beam, room)
    run = quick(lambda inputs: model.decoder_step(inputs, training=False))
    generator = np.random.default_rng(0)
    targets = np.zeros((rows, beam, steps), "int32")
    logits = np.zeros((rows, beam, steps, VOCABULARY), "float32")
    for step in range(steps):
        if step and not step % room:
            state = model.grow_state(state, room)
        targets[:, :, step] = generator.integers(3, VOCABULARY, (rows, beam)) if step else 2
        result = run(
            {
                "token": ops.convert_to_tensor(targets[:, :, step]),
                "position": ops.convert_to_tensor(np.int32(step)),
                "state": state,
                "memory": memory,
            }
        )
        logits[:, :, step] = numpy_of(result["logits"])
        parents = generator.integers(0, beam, (rows, beam))
        place = np.arange(rows)[:, None], parents
        targets, logits = targets[place], logits[place]
        # The contract lets a search gather the `beam` part only.
        moved = keras.tree.map_structure(
            lambda tensor, place=place: ops.convert_to_tensor(numpy_of(tensor)[place]),
            result["state"]["beam"],
        )
        state = {"beam": moved, "shared": result["state"]["shared"]}
    for k in range(beam):
        expected = expected_logits(name, model, SOURCE, targets[:, k])
        np.testing.assert_allclose(logits[:, k], expected, atol=2e-5)


def test_encoder_memory_is_not_copied_per_hypothesis(variant):
    model = variant[1]
    memory = quick(model.encoder)(SOURCE)
    width = SIZES["units"] // HEADS
    assert {name: tuple(tensor.shape) for name, tensor in memory.items()} == {
        "mask": (3, 4),
        **{f"{part}_{i}": (3, HEADS, 4, width) for part in ("key", "value") for i in range(2)},
    }
    np.testing.assert_array_equal(memory["mask"], SOURCE != 0)
    state = model.initial_state(memory, 7, 11)
    # Only the ancestors of the cache entries move with a hypothesis.
    assert {name: tuple(t.shape) for name, t in state["beam"].items()} == {
        "ancestors": (3, 7, 11, 7)
    }
    assert {name: tuple(t.shape) for name, t in state["shared"].items()} == {
        "write_index": (3,),
        **{f"{part}_{i}": (3, HEADS, 11, 7, width) for part in ("key", "value") for i in range(2)},
    }


def test_more_padding_changes_nothing(variant):
    model = variant[1]
    source = np.pad(SOURCE, [(0, 0), (0, 3)])
    target = np.pad(TARGET, [(0, 0), (0, 2)])
    real = TARGET != 0
    np.testing.assert_allclose(
        logits_of(model, source, target)[:, :5][real], logits_of(model)[real], atol=2e-5
    )


def test_batch_mates_change_nothing(variant):
    model = variant[1]
    together = logits_of(model)
    for order in ([2, 0, 1], [1, 1, 1]):
        np.testing.assert_allclose(
            logits_of(model, SOURCE[order], TARGET[order]), together[order], atol=2e-5
        )


def test_source_of_only_padding_is_finite_and_leaves_other_rows_alone():
    model = small()
    source = SOURCE.copy()
    source[1] = 0
    logits = logits_of(model, source)
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(logits[[0, 2]], logits_of(model)[[0, 2]], atol=2e-5)
    loss = SequenceCrossEntropy(0.1)
    targets = np.where(TARGET == 0, 0, 3)
    _, by_weight = gradients(
        lambda: loss(targets, model({"source": source, "target": TARGET})),
        [],
        model.trainable_weights,
    )
    assert all(np.isfinite(gradient).all() for gradient in by_weight)
    assert all(gradient.any() for gradient in by_weight)


def test_the_parts_share_the_weights_of_the_model(variant):
    model = variant[1]
    ids = {id(weight) for weight in model.weights}
    encoder = {id(weight) for weight in model.encoder.weights}
    step = {id(weight) for weight in model.decoder_step.weights}
    assert encoder | step == ids


def test_a_config_rebuilds_the_model(variant):
    model = variant[1]
    config = json.loads(json.dumps(model.get_config()))
    again = Transformer.from_config(config)
    assert again.get_config() == model.get_config()
    assert [w.path for w in again.weights] == [w.path for w in model.weights]
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(logits_of(again), logits_of(model))


def test_saved_transformer_loads_with_its_encoder(tmp_path):
    model = small()
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(logits_of(again), logits_of(model), atol=1e-6)
    np.testing.assert_allclose(
        quick(again.encoder)(SOURCE)["value_0"], quick(model.encoder)(SOURCE)["value_0"], atol=1e-6
    )


def test_dropout_acts_only_in_training_and_follows_the_seed():
    models = [made(dropout=0.3, **ONE_LAYER, seed=seed) for seed in (1, 1, 2)]
    inputs = {"source": SOURCE, "target": TARGET}
    # One program for all three, because the seeds are among its inputs.
    run = quick(lambda *values: models[0].stateless_call(*values, inputs, training=True)[0])
    first, again, other = (
        numpy_of(
            run(
                [variable.value for variable in model.trainable_variables],
                [variable.value for variable in model.non_trainable_variables],
            )
        )
        for model in models
    )
    np.testing.assert_allclose(logits_of(models[0]), logits_of(small()), atol=1e-6)
    assert abs(first - logits_of(small())).max() > 0.1
    np.testing.assert_array_equal(first, again)
    assert abs(first - other).max() > 0.1


def test_half_precision_keeps_float32_weights_and_logits_and_stays_near():
    model = made(**ONE_LAYER, dtype="mixed_bfloat16")
    kept = {keras.backend.standardize_dtype(weight.dtype) for weight in model.weights}
    assert kept == {"float32"}
    logits = logits_of(model)
    assert logits.dtype == np.float32
    real = TARGET != 0
    exact = logits_of(small())
    # For values of about 3 after some thirty roundings to 8 bits.
    assert abs(logits - exact)[real].max() < 0.3
    memory = quick(model.encoder)(SOURCE)
    state = model.initial_state(memory, 2, 3)
    result = quick(model.decoder_step)(
        {
            "token": ops.full((3, 2), 2, dtype="int32"),
            "position": ops.zeros((), dtype="int32"),
            "state": state,
            "memory": memory,
        }
    )
    assert keras.backend.standardize_dtype(result["logits"].dtype) == "float32"
    assert abs(numpy_of(result["logits"])[:, 1] - exact[:, 0]).max() < 0.3
    # The state must not change its dtypes from step to step.
    for before, after in zip(
        keras.tree.flatten(state), keras.tree.flatten(result["state"]), strict=True
    ):
        assert before.dtype == after.dtype
    assert keras.backend.standardize_dtype(state["shared"]["key_0"].dtype) == "bfloat16"
    assert Transformer.from_config(model.get_config()).compute_dtype == "bfloat16"


@pytest.mark.slow
@pytest.mark.weekly
def test_transformer_learns_in_a_plain_fit():
    """Targets repeat the first source token, so that a few updates must halve the loss."""
    model = Transformer(VOCABULARY, VOCABULARY, **SIZES | ONE_LAYER, dropout=0.0)
    model.compile(keras.optimizers.Adam(0.02), loss=SequenceCrossEntropy())
    generator = np.random.default_rng(0)
    source = generator.integers(4, VOCABULARY, (64, 3)).astype("int32")
    target = np.concatenate([np.full((64, 1), 2), source[:, :1]], axis=1).astype("int32")
    output = np.concatenate([source[:, :1], np.full((64, 1), 3)], axis=1).astype("int32")
    history = model.fit(
        {"source": source, "target": target}, output, batch_size=64, epochs=25, verbose=0
    )
    losses = history.history["loss"]
    assert losses[-1] < losses[0] / 2


def test_shared_embeddings_require_equal_vocabulary_sizes():
    with pytest.raises(ValueError, match=r"`share_embeddings`.*30 source and 12 target"):
        made(source_vocabulary_size=30, share_embeddings=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_heads": 3}, r"`num_heads` \(3\) must divide"),
        ({"norm": "none"}, '`norm` must be "pre" or "post"'),
        ({"attention_dropout": 1.0}, r"`dropout`.*\[0, 1\)"),
        ({"units": 0}, "`units` must be a positive integer"),
    ],
)
def test_invalid_transformer_arguments_raise_value_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        made(**arguments)
