"""The recognizer compared with numpy, its search, and odd lengths."""

import keras
import numpy as np
import pytest
import reference_recurrent as reference
from differentiation import quick
from keras import ops
from reference_attention import location_attend

from keras_seq.models import AttentionRecognizer
from keras_seq.search import beam_search, forced_scores, sample

VOCABULARY = 12
SMALL = {
    "embedding_units": 6,
    "encoder_units": 3,
    "decoder_units": 5,
    "attention_units": 4,
}
VARIANTS = {
    "gru-location": {"cell": "gru", "attention": "location"},
    "lstm-bahdanau": {
        "cell": "lstm",
        "attention": "bahdanau",
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
    },
}
LENGTHS = np.array([7, 4, 1], "int32")
FEATURES = np.random.default_rng(0).normal(size=(3, 7, 4)).astype("float32")
SOURCE = {"features": FEATURES, "lengths": LENGTHS}
TARGET = np.array([[2, 4, 4, 0], [2, 11, 10, 9], [2, 0, 0, 0]], "int32")


def made(**options):
    model = AttentionRecognizer(VOCABULARY, 4, **SMALL | options)
    reference.randomize(model)
    return model


@pytest.fixture(scope="module", params=VARIANTS)
def variant(request):
    return VARIANTS[request.param], made(**VARIANTS[request.param])


@pytest.fixture(scope="module")
def model():
    return made()


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def listener(x, weights, cell, num_layers):
    """Outputs of one row without padding, and the last states of the topmost layer."""
    mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    x = (x - mean) / np.sqrt(variance + 1e-3)
    x = x * weights["normalization/gamma"] + weights["normalization/beta"]
    for i in range(num_layers):
        if i:
            # Pairs of steps; an unpaired last step is joined with 0.
            x = np.concatenate([x, np.zeros((len(x) % 2, x.shape[1]))]).reshape(-1, 2 * x.shape[1])
        renamed = {
            path.replace(f"encoder_{i}/", "encoder_0/"): array
            for path, array in weights.items()
            if path.startswith(f"encoder_{i}/")
        }
        x, last = reference.bidirectional(x, cell, renamed, 1)
    return x, last[0]


def by_definition(x, target, weights, options):
    """Logits `(T, V)` and attention `(T, P)` of one row without padding."""
    cell = options["cell"]
    value, last = listener(x, weights, cell, options.get("num_encoder_layers", 3))
    layers = options.get("num_decoder_layers", 1)
    states = [
        [
            np.tanh(state @ weights[f"bridge_{i}_{j}/kernel"] + weights[f"bridge_{i}_{j}/bias"])
            for j, state in enumerate(last)
        ]
        for i in range(layers)
    ]
    name = "decoder_0/cell/attention"
    if options["attention"] == "bahdanau":

        def attend(query, value):
            return reference.bahdanau(query, value, weights, name)

    else:
        attend = location_attend(weights, name)

    y = weights["target_embedding/embeddings"][list(target)]
    y, attention = reference.attention_decoder(
        y * np.sqrt(y.shape[1]),
        value,
        states[0],
        lambda inputs, states: reference.CELLS[cell][0](
            inputs, states, weights, f"decoder_0/cell/{cell}"
        ),
        attend,
        weights["decoder_0/cell/kernel"],
    )
    for i in range(1, layers):
        y = y + reference.unroll(y, states[i], cell, weights, f"decoder_{i}/{cell}_cell")[0]
    return y @ weights["logits/kernel"] + weights["logits/bias"], attention


@pytest.mark.slow
def test_attention_recognizer_equals_numpy(variant):
    options, model = variant
    found = model.with_attention().predict_on_batch({"source": SOURCE, "target": TARGET})
    logits = model.predict_on_batch({"source": SOURCE, "target": TARGET})
    np.testing.assert_allclose(logits, found["logits"], atol=1e-6)
    weights = reference.named_arrays(model)
    for row, length in enumerate(LENGTHS):
        real = TARGET[row][TARGET[row] != 0]
        expected, attention = by_definition(FEATURES[row, :length], real, weights, options)
        np.testing.assert_allclose(logits[row, : len(real)], expected, atol=1e-5)
        steps = attention.shape[1]
        got = found["attention"][row, : len(real)]
        np.testing.assert_allclose(got[:, :steps], attention, atol=1e-5)
        assert not got[:, steps:].any()


def test_each_layer_halves_the_steps_and_rounds_up(model):
    mask = numpy_of(model.encoder(SOURCE)["mask"])
    assert mask.tolist() == [[True, True], [True, False], [True, False]]


def test_padding_content_does_not_change_recognizer_logits(model):
    padded = np.full((3, 10, 4), np.nan, "float32")
    for row, length in enumerate(LENGTHS):
        padded[row, :length] = FEATURES[row, :length]
    longer = {"source": {"features": padded, "lengths": LENGTHS}, "target": TARGET}
    np.testing.assert_allclose(
        model.predict_on_batch(longer),
        model.predict_on_batch({"source": SOURCE, "target": TARGET}),
        atol=1e-6,
    )


def searcher(model, **options):
    """One compiled program for all sizes; on JAX one for each size."""

    def find(source):
        return beam_search(model, source, **options)

    if keras.backend.backend() == "jax":
        return quick(find)
    import tensorflow as tf

    kinds = {
        "features": tf.TensorSpec([None, None, 4], tf.float32),
        "lengths": tf.TensorSpec([None], tf.int32),
    }
    return tf.function(find, input_signature=[kinds], autograph=False)


@pytest.mark.slow
def test_recognizer_search_scores_equal_forced_decoding_scores(variant):
    _, model = variant
    search = searcher(model, beam_size=3, max_length=5, length_normalization="none")
    found = search(SOURCE)
    tokens = numpy_of(found.tokens)[:, 0]
    inputs = np.concatenate([np.full((3, 1), 2, "int32"), tokens[:, :-1]], axis=1)
    scores = numpy_of(forced_scores(model, SOURCE, inputs, tokens)).sum(axis=1)
    np.testing.assert_allclose(scores, numpy_of(found.scores)[:, 0], atol=1e-5)


@pytest.mark.slow
def test_recognizer_search_of_padded_rows_equals_each_row_alone(model):
    search = searcher(model, beam_size=3, max_length=6, coverage_penalty=0.2)
    together = search(SOURCE)
    for row, length in enumerate(LENGTHS):
        # Keras warns of a softmax over a single step.
        alone = {
            "features": FEATURES[row : row + 1, : max(length, 5)],
            "lengths": LENGTHS[row : row + 1],
        }
        found = search(alone)
        assert numpy_of(found.tokens)[0].tolist() == numpy_of(together.tokens)[row].tolist()
        np.testing.assert_allclose(found.scores[0], together.scores[row], atol=1e-5)


def test_sampling_from_the_recognizer_repeats_with_one_seed(model):
    found = sample(model, SOURCE, n_best=2, seed=1, max_length=4)
    again = sample(model, SOURCE, n_best=2, seed=1, max_length=4)
    assert numpy_of(found.tokens).shape[:2] == (3, 2)
    assert numpy_of(found.tokens).tolist() == numpy_of(again.tokens).tolist()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cell": "rnn"}, "`cell` must be one of 'gru', 'lstm', received 'rnn'"),
        ({"attention": "luong"}, "`attention` must be one of 'location', 'bahdanau'"),
        ({"encoder_units": 0}, "`encoder_units` must be a positive integer, received 0"),
        ({"features": 0}, "`features` must be a layer that makes features of samples"),
        ({"features": "mel"}, "or a positive integer, received 'mel'"),
    ],
)
def test_invalid_recognizer_arguments_are_named_in_the_error(arguments, words):
    with pytest.raises(ValueError) as error:
        AttentionRecognizer(**{"vocabulary_size": VOCABULARY, "features": 4, **SMALL, **arguments})
    assert words in str(error.value)


def test_ctc_is_a_layer_over_the_listener_and_blank_at_padding():
    model = made(cell="gru", num_encoder_layers=2, ctc=True)
    inputs = {"source": SOURCE, "target": TARGET}
    outputs = {name: numpy_of(value) for name, value in model.with_ctc(inputs).items()}
    np.testing.assert_allclose(outputs["logits"], numpy_of(model(inputs)), atol=1e-5)
    weights = {weight.path: numpy_of(weight) for weight in model.weights}
    kernel, bias = weights["ctc/projection/kernel"], weights["ctc/projection/bias"]
    for row, length in enumerate(LENGTHS):
        value, _ = listener(FEATURES[row, :length], weights, "gru", 2)
        found = outputs["ctc"][row]
        np.testing.assert_allclose(found[: len(value)], value @ kernel + bias, atol=1e-5)
        assert (found[len(value) :].argmax(axis=1) == 0).all()
