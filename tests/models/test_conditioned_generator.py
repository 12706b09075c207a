"""The conditioned generator compared with numpy, and its search, files and export."""

import keras
import numpy as np
import pytest
import reference_recurrent as reference
from keras import ops
from plain_search import (
    Rules,
    assert_same_results,
    constrained,
    plain_beam_search,
    results_of,
)

from keras_seq.models import ConditionedGenerator, Ensemble
from keras_seq.search import beam_search, forced_scores, sample

VOCABULARY, LIMIT = 9, 5
# 2 starts a target.
TARGET = np.array([[2, 4, 4, 0], [2, 8, 7, 6], [2, 0, 0, 0]], "int32")
IMAGES = np.random.default_rng(3).normal(size=(3, 4, 4, 1)).astype("float32")
OPTIONS = {"embedding_units": 4, "units": 6}
# Each search on JAX is compiled; that it is the same as on TensorFlow tests/search shows.
on_tensorflow = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="takes long")
VARIANTS = {
    "gru": {"cell": "gru"},
    "gru-every-step": {"cell": "gru", "context": "every_step", "tie_output": True},
    "lstm-deep": {"num_layers": 2, "context": "every_step"},
}


def network():
    """Pictures -> vectors."""
    return keras.Sequential(
        [
            keras.Input((4, 4, 1)),
            keras.layers.Conv2D(3, 2, strides=2, activation="relu", name="convolution"),
            keras.layers.Flatten(name="flat"),
        ],
        name="network",
    )


def plain_network(image, weights):
    kernel, bias = weights["convolution/kernel"], weights["convolution/bias"]
    patches = [image[i : i + 2, j : j + 2, 0] for i in (0, 2) for j in (0, 2)]
    return np.concatenate([np.maximum(np.tensordot(p, kernel[:, :, 0]) + bias, 0) for p in patches])


def plain_logits(image, tokens, weights, cell="lstm", num_layers=1, context="init", **options):
    """`(T, V)` of a row without padding."""
    vector = plain_network(image, weights)
    compute, num_states = reference.CELLS[cell]
    states = [
        [
            np.tanh(vector @ weights[f"first_{name}/kernel"] + weights[f"first_{name}/bias"])
            for name in (f"state_{i}_{j}" for j in range(num_states))
        ]
        for i in range(num_layers)
    ]
    table, logits = weights["embedding/embeddings"], []
    for token in tokens:
        x = np.sqrt(table.shape[1]) * table[token]
        for i in range(num_layers):
            read = np.concatenate([x, vector]) if i == 0 and context == "every_step" else x
            outputs, states[i] = compute(read, states[i], weights, f"{cell}_{i}/{cell}_cell")
            x = x + outputs if i else outputs
        if options.get("tie_output"):
            logits.append(table @ (x @ weights["output_projection/kernel"]))
        else:
            logits.append(x @ weights["logits/kernel"] + weights["logits/bias"])
    return np.stack(logits)


def made(encoder=network, **options):
    model = ConditionedGenerator(encoder(), VOCABULARY, **OPTIONS | options)
    reference.randomize(model, seed=4, scale=0.8)
    return model


def weights_of(model):
    """Arrays by path, without the name of the encoder."""
    named = reference.named_arrays(model)
    return {path.removeprefix("network/"): array for path, array in named.items()}


@pytest.fixture(scope="module")
def model():
    return made(cell="gru", context="every_step")


@pytest.mark.parametrize("name", VARIANTS)
def test_conditioned_generator_equals_numpy(name):
    model = made(**VARIANTS[name])
    weights = weights_of(model)
    found = ops.convert_to_numpy(model.predict_on_batch({"source": IMAGES, "target": TARGET}))
    for image, row, logits in zip(IMAGES, TARGET, found, strict=True):
        real = row[row != 0]
        expected = plain_logits(image, real, weights, **VARIANTS[name])
        np.testing.assert_allclose(logits[: len(real)], expected, atol=2e-5)


def test_beam_search_from_images_equals_plain_python_search(model):
    weights = weights_of(model)
    result = beam_search(model, IMAGES, beam_size=3, n_best=3, max_length=LIMIT)
    for number, image in enumerate(IMAGES):

        def logits(tokens, image=image):
            return plain_logits(image, (2, *tokens), weights, cell="gru", context="every_step")[-1]

        expected = plain_beam_search(constrained(logits, Rules()), 3, 3, LIMIT)
        assert_same_results(results_of(result, number), expected)


@on_tensorflow
def test_generator_search_scores_equal_forced_decoding_scores(model):
    found = beam_search(model, IMAGES, max_length=LIMIT, length_normalization="none")
    output = ops.convert_to_numpy(found.tokens)[:, 0]
    target = np.concatenate([np.full((3, 1), 2), output[:, :-1]], axis=1) * (output != 0)
    forced = ops.convert_to_numpy(forced_scores(model, IMAGES, target, output))
    np.testing.assert_allclose(forced.sum(axis=1), ops.convert_to_numpy(found.scores)[:, 0], 1e-4)


@on_tensorflow
def test_only_max_length_limits_targets_of_non_text_sources(model):
    """The image counts as one step, for which a length ratio would allow two tokens."""
    options = {"min_length": 12, "max_length": 12, "max_length_ratio": 2.0, "max_length_extra": 1}
    found = beam_search(model, IMAGES, beam_size=2, **options)
    np.testing.assert_array_equal(ops.convert_to_numpy(found.lengths), 12)


@on_tensorflow
def test_samples_depend_on_the_picture_and_the_seed_alone(model):
    def drawn(images, seed):
        found = sample(model, images, n_best=4, seed=seed, max_length=LIMIT)
        return ops.convert_to_numpy(found.tokens)

    together = drawn(IMAGES, 1)
    np.testing.assert_array_equal(drawn(IMAGES[::-1], 1)[::-1], together)
    np.testing.assert_array_equal(drawn(IMAGES[1:2], 1), together[1:2])
    assert (drawn(IMAGES, 2) != together).any()


def test_sample_frequencies_match_the_model_probabilities(model):
    found = sample(model, IMAGES[:1], n_best=4000, seed=5, max_length=1, forbidden_tokens=())
    counts = np.bincount(ops.convert_to_numpy(found.tokens).ravel(), minlength=VOCABULARY)
    weights = weights_of(model)
    logits = plain_logits(IMAGES[0], (2,), weights, cell="gru", context="every_step")[0]
    expected = 4000 * np.exp(logits) / np.exp(logits).sum()
    # With eight degrees of freedom the statistic exceeds 26.1 once in a thousand draws.
    assert ((counts - expected) ** 2 / expected).sum() < 26.1


@on_tensorflow
def test_ensemble_of_one_generator_twice_equals_the_generator(model):
    alone = beam_search(model, IMAGES, beam_size=2, max_length=LIMIT)
    twice = beam_search(Ensemble([model, model]), IMAGES, beam_size=2, max_length=LIMIT)
    np.testing.assert_array_equal(*(ops.convert_to_numpy(each.tokens) for each in (alone, twice)))


def test_generator_accepts_a_source_of_several_tensors():
    def both():
        size = keras.Input((2,), name="size")
        kind = keras.Input((), dtype="int32", name="kind")
        vector = ops.concatenate([size, ops.one_hot(kind, 3)], axis=-1)
        return keras.Model({"size": size, "kind": kind}, vector)

    model = made(both)
    size, kind = np.array([[0.5, 1.0]] * 3, "float32"), np.array([0, 1, 2], "int32")
    drawn = sample(model, {"size": size, "kind": kind}, max_length=LIMIT)
    assert tuple(drawn.tokens.shape) == (3, 1, LIMIT)
    inputs = {"source": {"size": size, "kind": kind}, "target": TARGET[:1].repeat(3, 0)}
    logits = ops.convert_to_numpy(model.predict_on_batch(inputs))
    assert not np.allclose(logits[0], logits[1])


def test_saved_generator_file_includes_the_encoder(model, tmp_path):
    model.save(tmp_path / "model.keras")
    restored = keras.saving.load_model(tmp_path / "model.keras")
    inputs = {"source": IMAGES, "target": TARGET}
    np.testing.assert_array_equal(*(one.predict_on_batch(inputs) for one in (model, restored)))
    memories = [one.encoder.predict_on_batch(IMAGES) for one in (model, restored)]
    keras.tree.map_structure(np.testing.assert_array_equal, *memories)


def test_the_encoder_is_trained_with_the_rest_unless_it_is_frozen():
    encoder = network()
    encoder.trainable = False
    frozen, whole = made(lambda: encoder), made()
    assert len(whole.trainable_weights) == len(whole.weights) == len(frozen.weights)
    kept = [weight.path for weight in frozen.weights if not weight.trainable]
    assert {path.split("/")[-2] for path in kept} == {"convolution"}


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="what is exported is its graph")
def test_exported_generator_maps_images_to_token_ids(model, tmp_path):
    import tensorflow as tf

    module = tf.Module()
    # Raw variables, because a Keras object as attribute does not load in a model server.
    module.of_model = [weight.value for weight in model.weights]
    signature = [tf.TensorSpec((None, 4, 4, 1), tf.float32, name="image")]

    @tf.function(input_signature=signature, autograph=False)
    def serve(image):
        found = beam_search(model, image, beam_size=3, max_length=20)
        return {"ids": found.tokens[:, 0], "score": found.scores[:, 0]}

    module.serve = serve
    tf.saved_model.save(module, str(tmp_path), signatures={"serving_default": serve})
    expected = beam_search(model, IMAGES, beam_size=3, max_length=20)
    served = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    for images in (IMAGES, IMAGES[:1]):
        found = served(image=tf.constant(images))
        rows = len(images)
        np.testing.assert_array_equal(found["ids"], expected.tokens[:rows, 0])
        np.testing.assert_allclose(found["score"], expected.scores[:rows, 0], atol=1e-5)


def test_coverage_penalty_on_a_generator_without_attention_raises(model):
    with pytest.raises(ValueError, match="needs attention to the source"):
        beam_search(model, IMAGES, coverage_penalty=0.2, max_length=LIMIT)


def test_invalid_generator_arguments_are_named_in_the_error():
    with pytest.raises(ValueError, match="`context` must be one of 'init', 'every_step'"):
        ConditionedGenerator(network(), VOCABULARY, context="a")
    with pytest.raises(ValueError, match="`cell` must be one of 'gru', 'lstm', received 'rnn'"):
        ConditionedGenerator(network(), VOCABULARY, cell="rnn")
    with pytest.raises(ValueError, match="input of the encoder 'part' is not known: give"):
        ConditionedGenerator(keras.layers.Dense(3, name="part"), VOCABULARY)
    maps = keras.Sequential([keras.Input((4, 4, 1)), keras.layers.Conv2D(3, 2)])
    with pytest.raises(ValueError, match=r"known size D, received shape \(None, 3, 3, 3\)"):
        ConditionedGenerator(maps, VOCABULARY)
