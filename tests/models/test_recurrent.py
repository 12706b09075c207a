"""The recurrent encoder-decoder compared with numpy, whole targets and single steps."""

import keras
import numpy as np
import pytest
import reference_recurrent as reference
from differentiation import quick
from keras import ops

from keras_seq.models.recurrent import RecurrentSeq2Seq

VOCABULARY = 12
OPTIONS = {
    "encoder": "recurrent",
    "cell": "gru",
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "embedding_units": 6,
    "encoder_units": 4,
    "decoder_units": 8,
    "attention": "bahdanau",
    "attention_units": 5,
    "input_feeding": True,
    "context": "every_step",
    "bridge": "dense",
    "share_embeddings": False,
    "tie_output": False,
}
# Each value of each option is in at least one of them.
VARIANTS = {
    "gru": {},
    "lstm": {"cell": "lstm", "bridge": "copy", "context": "init", "tie_output": True},
    "gru-deep": {
        "num_encoder_layers": 2,
        "num_decoder_layers": 3,
        "attention": "luong",
        "share_embeddings": True,
    },
    "lstm-deep": {
        "cell": "lstm",
        "num_encoder_layers": 3,
        "num_decoder_layers": 2,
        "bridge": "zero",
        "input_feeding": False,
        "embedding_units": 8,
        "share_embeddings": True,
        "tie_output": True,
    },
    "gru-convolutional": {"encoder": "convolutional", "num_encoder_layers": 2},
    "lstm-convolutional": {
        "encoder": "convolutional",
        "cell": "lstm",
        "num_decoder_layers": 2,
        "bridge": "copy",
    },
    "lstm-luong": {"cell": "lstm", "attention": "luong", "input_feeding": False},
}
# Rows of different lengths on both sides; 3 ends a source, 2 starts a target.
SOURCE = np.array([[5, 9, 4, 3], [7, 3, 0, 0], [3, 0, 0, 0]], "int32")
TARGET = np.array([[2, 4, 4, 0, 0], [2, 11, 10, 9, 8], [2, 0, 0, 0, 0]], "int32")
REAL = TARGET != 0


def made(**arguments):
    model = RecurrentSeq2Seq(VOCABULARY, VOCABULARY, **OPTIONS | arguments)
    reference.randomize(model)
    return model


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request):
    options = OPTIONS | VARIANTS[request.param]
    return options, made(**options)


@pytest.fixture(scope="module")
def model():
    return made()


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def logits_of(model, source=SOURCE, target=TARGET):
    return numpy_of(model.predict_on_batch({"source": source, "target": target}))


def expected_logits(model, options, target=TARGET):
    """Logits `(B, T, V)`, NaN on padding."""
    named = reference.named_arrays(model)
    expected = np.full((*target.shape, VOCABULARY), np.nan)
    for row, (source_ids, target_ids) in enumerate(zip(SOURCE, target, strict=True)):
        real = target_ids[target_ids != 0]
        expected[row, : len(real)] = reference.recurrent_seq2seq(
            source_ids[source_ids != 0], real, named, options
        )
    return expected


def test_recurrent_seq2seq_equals_numpy(variant):
    options, model = variant
    logits = logits_of(model)
    assert logits.shape == (3, 5, VOCABULARY)
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits[REAL], expected_logits(model, options)[REAL], atol=1e-5)
    assert np.isfinite(logits).all()


def test_reordered_hypotheses_equal_numpy(variant):
    """Steps as in a search, with random parents at each step."""
    options, model = variant
    beam, steps, rows = 3, 4, len(SOURCE)
    memory = quick(model.encoder)(SOURCE)
    state = model.initial_state(memory, beam, steps)
    run = quick(lambda inputs: model.decoder_step(inputs, training=False))
    generator = np.random.default_rng(0)
    targets = np.zeros((rows, beam, steps), "int32")
    logits = np.zeros((rows, beam, steps, VOCABULARY), "float32")
    for step in range(steps):
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
        moved = keras.tree.map_structure(
            lambda tensor, place=place: ops.convert_to_tensor(numpy_of(tensor)[place]),
            result["state"]["beam"],
        )
        state = {"beam": moved, "shared": result["state"]["shared"]}
    for k in range(beam):
        expected = expected_logits(model, options, targets[:, k])
        np.testing.assert_allclose(logits[:, k], expected, atol=1e-5)


def test_encoder_memory_is_not_copied_per_hypothesis():
    model = made(cell="lstm", num_decoder_layers=2)
    memory = quick(model.encoder)(SOURCE)
    states = {f"state_{i}_{j}": (3, 8) for i in range(2) for j in range(2)}
    assert {name: tuple(tensor.shape) for name, tensor in memory.items()} == {
        "mask": (3, 4),
        "key": (3, 4, 5),
        "value": (3, 4, 8),
        "summary": (3, 8),
        **states,
    }
    np.testing.assert_array_equal(numpy_of(memory["mask"]), SOURCE != 0)
    state = model.initial_state(memory, 7, 11)
    assert {name: tuple(tensor.shape) for name, tensor in state["beam"].items()} == {
        **dict.fromkeys(states, (3, 7, 8)),
        "attentional_state": (3, 7, 8),
    }
    assert state["shared"] == {}


def test_source_of_only_padding_is_finite_and_leaves_other_rows_alone(model):
    empty = SOURCE * np.array([[0], [1], [1]])
    logits = logits_of(model, empty)
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(logits[1:], logits_of(model)[1:], atol=1e-5)


def test_every_weight_belongs_to_the_model_with_a_unique_path(variant):
    options, model = variant
    paths = [weight.path for weight in model.weights]
    assert len(set(paths)) == len(paths)
    for part in (model.encoder, model.decoder_step):
        assert {id(weight) for weight in part.weights} <= {id(weight) for weight in model.weights}
    # "attentional_state" has no weight and one table serves all where it is shared.
    assert sum("embedding" in path for path in paths) == (1 if options["share_embeddings"] else 2)
    assert any("logits" in path for path in paths) != options["tie_output"]


def training_logits(model, times):
    """Outputs of `times` successive passes in training mode."""
    inputs = {"source": ops.convert_to_tensor(SOURCE), "target": ops.convert_to_tensor(TARGET)}
    run = quick(lambda *weights: model.stateless_call(*weights, inputs, training=True))
    values = [weight.value for weight in model.trainable_variables]
    others = [weight.value for weight in model.non_trainable_variables]
    results = []
    for _ in range(times):
        logits, others = run(values, others)
        results.append(numpy_of(logits))
    return results


@pytest.mark.slow
def test_dropout_acts_in_training_only():
    arguments = {"dropout": 0.5, "attention_dropout": 0.5, "num_encoder_layers": 2, "seed": 1}
    model = made(**arguments)
    plain = made(num_encoder_layers=2, dropout=0.0)
    np.testing.assert_allclose(logits_of(model), logits_of(plain), atol=1e-6)
    first, second = training_logits(model, 2)
    assert not np.allclose(first, second)
    np.testing.assert_allclose(training_logits(made(**arguments), 1)[0], first, atol=1e-6)


@pytest.mark.slow
@pytest.mark.weekly
def test_model_with_many_layers_survives_file_round_trips(tmp_path):
    """Keras confuses layers whose temporary copies have the same address, one load in six here."""
    model = made(num_encoder_layers=30)
    model.save(tmp_path / "model.keras")
    for _ in range(6):
        again = keras.saving.load_model(tmp_path / "model.keras")
        assert len(again.weights) == len(model.weights)


def test_summary_names_the_parts(model):
    lines = []
    model.summary(print_fn=lambda line, *_: lines.append(line))
    for part in ("source_embedding", "encoder_0", "decoder_0", "logits"):
        assert part in "".join(lines)


@pytest.mark.slow
@pytest.mark.weekly
def test_recurrent_seq2seq_learns_to_copy():
    keras.utils.set_random_seed(1)
    model = RecurrentSeq2Seq(
        12,
        12,
        embedding_units=16,
        encoder_units=16,
        decoder_units=32,
        attention_units=16,
        dropout=0,
    )
    generator = np.random.default_rng(0)
    tokens = generator.integers(4, 12, (256, 5)).astype("int32")
    target = np.concatenate([np.full((256, 1), 2, "int32"), tokens], axis=1)
    labels = np.concatenate([tokens, np.full((256, 1), 3, "int32")], axis=1)
    model.compile(
        keras.optimizers.Adam(0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    history = model.fit(
        {"source": tokens, "target": target}, labels, batch_size=64, epochs=12, verbose=0
    ).history["loss"]
    # A model that ignores the source stays above log(8) * 5 / 6, which is 1.73.
    assert history[0] > 1.7
    assert history[-1] < 0.5


def test_half_precision_is_close_and_its_logits_are_float32():
    model = made()
    half = made(dtype="mixed_bfloat16")
    half.set_weights(model.get_weights())
    logits = logits_of(half)
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits[REAL], logits_of(model)[REAL], atol=0.3)
    memory = quick(half.encoder)(SOURCE)
    state = half.initial_state(memory, 2, 4)
    assert {keras.backend.standardize_dtype(t.dtype) for t in state["beam"].values()} == {
        "bfloat16"
    }
    step = quick(half.decoder_step)(
        {
            "token": ops.full((3, 2), 2, dtype="int32"),
            "position": ops.convert_to_tensor(np.int32(0)),
            "state": state,
            "memory": memory,
        }
    )
    np.testing.assert_allclose(numpy_of(step["logits"])[:, 0], logits[:, 0], atol=0.1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"encoder": "attention"}, "`encoder` must be one of 'recurrent', 'convolutional'"),
        ({"cell": "rnn"}, "`cell` must be one of 'gru', 'lstm', received 'rnn'"),
        (
            {"attention": None},
            "`attention` must be one of 'bahdanau', 'luong', 'location', .*, received None",
        ),
        ({"context": "first"}, "`context` must be one of 'every_step', 'init'"),
        ({"bridge": "wide"}, "`bridge` must be one of 'copy', 'dense', 'zero'"),
        ({"decoder_units": 0}, "`decoder_units` must be a positive integer, received 0"),
        ({"bridge": "copy", "decoder_units": 6}, "received 6 and 4: change one or use"),
    ],
)
def test_invalid_recurrent_seq2seq_arguments_are_named_in_the_error(arguments, words):
    with pytest.raises(ValueError, match=words):
        RecurrentSeq2Seq(VOCABULARY, VOCABULARY, **OPTIONS | arguments)


def test_shared_embeddings_require_equal_vocabulary_sizes():
    with pytest.raises(ValueError, match="received 12 source and 13 target words"):
        RecurrentSeq2Seq(12, 13, share_embeddings=True)
