"""Classifiers compared with numpy, and what each of them can learn."""

import keras
import numpy as np
import pytest
import reference_recurrent
import reference_transformer as reference
from keras import ops

from keras_seq.models import (
    BagTextEncoder,
    ConvolutionalTextEncoder,
    EnsembleClassifier,
    RecurrentTextEncoder,
    TextClassifier,
    TransformerTextEncoder,
)

VOCABULARY, CLASSES = 12, 3
# Full, padded, and a single token.
SOURCE = np.array([[4, 5, 11, 4, 9], [7, 6, 0, 0, 0], [8, 0, 0, 0, 0]], "int32")
TRANSFORMER = {"num_layers": 2, "units": 8, "feedforward_units": 10, "num_heads": 2}
RECURRENT = {"embedding_units": 4, "units": 3}
POOLED = {
    "mean": lambda steps: steps.mean(axis=0),
    "max": lambda steps: steps.max(axis=0),
    "last": lambda steps: steps[-1],
}


def check(model, vector_of):
    """The logits equal the last layer applied to the vector that numpy computes without padding."""
    reference.randomize(model)
    weights = reference.named_arrays(model)
    found = ops.convert_to_numpy(model.predict_on_batch({"source": SOURCE}))
    assert found.dtype == np.float32
    for row, logits in zip(SOURCE, found, strict=True):
        vector = vector_of(row[row != 0], weights)
        expected = vector @ weights["logits/kernel"] + weights["logits/bias"]
        np.testing.assert_allclose(logits, expected, atol=2e-5)


def embedded(row, weights):
    table = weights["embedding/embeddings"]
    return np.sqrt(table.shape[1]) * table[row]


@pytest.mark.parametrize("hidden_units", [5, 0])
def test_bag_classifier_equals_numpy(hidden_units):
    def vector_of(row, weights):
        mean = embedded(row, weights).mean(axis=0)
        if not hidden_units:
            return mean
        return reference.relu(mean @ weights["hidden/kernel"] + weights["hidden/bias"])

    encoder = BagTextEncoder(VOCABULARY, embedding_units=4)
    check(TextClassifier(encoder, CLASSES, hidden_units=hidden_units), vector_of)


def test_bag_of_ngrams_equals_numpy():
    def vector_of(row, weights):
        bigrams = [(0, *row)[i : i + 2] for i in range(len(row))]
        rows = [(first * 1021 + second) % 50 for first, second in bigrams]
        return (embedded(row, weights) + weights["ngram_2/embeddings"][rows]).mean(axis=0)

    encoder = BagTextEncoder(VOCABULARY, embedding_units=4, ngrams=2, ngram_rows=50)
    check(TextClassifier(encoder, CLASSES), vector_of)


@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_convolutional_classifier_equals_numpy(pooling):
    def vector_of(row, weights):
        x = embedded(row, weights)
        steps = []
        for s in range(len(x)):
            outputs = []
            for width in (1, 2, 3):
                kernel = weights[f"convolution_{width}/kernel"]
                total = weights[f"convolution_{width}/bias"].copy()
                for i in range(width):
                    place = s - (width - 1) // 2 + i
                    if 0 <= place < len(x):
                        total += x[place] @ kernel[i]
                outputs.append(reference.relu(total))
            steps.append(np.concatenate(outputs))
        return POOLED[pooling](np.array(steps))

    encoder = ConvolutionalTextEncoder(VOCABULARY, 4, widths=(1, 2, 3), filters=5)
    check(TextClassifier(encoder, CLASSES, pooling), vector_of)


@pytest.mark.parametrize("widths", [(), (3, 3), (0,)])
def test_invalid_widths_raise_value_error(widths):
    with pytest.raises(ValueError, match="widths"):
        ConvolutionalTextEncoder(VOCABULARY, widths=widths)


def small_member(name, classes=CLASSES):
    return TextClassifier(BagTextEncoder(VOCABULARY, embedding_units=4), classes, name=name)


def test_ensemble_has_the_mean_probability_of_its_members():
    model = EnsembleClassifier.of(small_member, 3)
    reference.randomize(model)
    found = np.exp(ops.convert_to_numpy(model({"source": SOURCE})))
    logits = [ops.convert_to_numpy(member({"source": SOURCE})) for member in model.members]
    shares = [np.exp(x) / np.exp(x).sum(axis=1, keepdims=True) for x in logits]
    np.testing.assert_allclose(found, np.mean(shares, axis=0), atol=1e-6)
    assert np.abs(shares[0] - shares[1]).max() > 0.01


def test_members_with_different_labels_raise_value_error():
    with pytest.raises(ValueError, match=r"the same labels, received \[3, 2\] labels"):
        EnsembleClassifier([small_member("a"), small_member("b", 2)])
    with pytest.raises(ValueError, match="at least one model"):
        EnsembleClassifier([])


@pytest.mark.parametrize(
    ("cell", "num_layers", "pooling"),
    [("gru", 1, "last"), ("lstm", 2, "last"), ("gru", 2, "mean"), ("lstm", 1, "max")],
)
def test_recurrent_classifier_equals_numpy(cell, num_layers, pooling):
    def vector_of(row, weights):
        outputs, last = reference_recurrent.bidirectional(
            embedded(row, weights), cell, weights, num_layers
        )
        # Both directions of the topmost layer; the second state of an LSTM is its carry.
        return last[-1][0] if pooling == "last" else POOLED[pooling](outputs)

    encoder = RecurrentTextEncoder(VOCABULARY, cell=cell, num_layers=num_layers, **RECURRENT)
    check(TextClassifier(encoder, CLASSES, pooling), vector_of)


@pytest.mark.parametrize(
    ("norm", "activation", "pooling"),
    [("pre", "relu", "mean"), ("post", "gelu", "last"), ("pre", "relu", "max")],
)
def test_transformer_classifier_equals_numpy(norm, activation, pooling):
    def vector_of(row, weights):
        x = reference.embed(row, weights["embedding/embeddings"])
        for i in range(TRANSFORMER["num_layers"]):
            function = getattr(reference, activation)
            prefix = f"encoder_block_{i}/"
            x = reference.encoder_block(x, weights, 2, norm, function, prefix=prefix)
        if norm == "pre":
            x = reference.normalize(x, weights, "encoder_norm")
        return POOLED[pooling](x)

    encoder = TransformerTextEncoder(VOCABULARY, **TRANSFORMER, norm=norm, activation=activation)
    check(TextClassifier(encoder, CLASSES, pooling), vector_of)


MODELS = {
    "bag": lambda **options: TextClassifier(
        BagTextEncoder(20, embedding_units=8), 2, hidden_units=16, **options
    ),
    "recurrent": lambda **options: TextClassifier(
        RecurrentTextEncoder(20, embedding_units=8, units=8, **options), 2, "last", **options
    ),
    "transformer": lambda **options: TextClassifier(
        TransformerTextEncoder(
            20,
            num_layers=1,
            units=16,
            feedforward_units=16,
            num_heads=2,
            attention_dropout=0.0,
            activation_dropout=0.0,
            **options,
        ),
        2,
        **options,
    ),
}


def texts_in_both_orders(seed):
    """Pairs of texts that differ in the order of two words."""
    generator = np.random.default_rng(seed)
    source = generator.integers(6, 20, (64, 6)).astype("int32")
    source[:, 4:] *= generator.random((64, 1)) < 0.5
    turned = source.copy()
    for row, other in zip(source, turned, strict=True):
        first, second = sorted(generator.choice(4, 2, replace=False))
        row[[first, second]] = 4, 5
        other[[first, second]] = 5, 4
    return np.concatenate([source, turned]), np.repeat([0, 1], 64)


def trained(name, source, labels):
    keras.utils.set_random_seed(1)
    model = MODELS[name](dropout=0.0)
    model.compile(
        keras.optimizers.Adam(0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=keras.backend.backend() == "jax",
    )
    for _ in range(40):
        model.train_on_batch({"source": source}, labels)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recurrent", "transformer"])
def test_classifiers_with_order_learn_the_order_of_two_words(name):
    model = trained(name, *texts_in_both_orders(0))
    source, labels = texts_in_both_orders(1)
    predicted = ops.convert_to_numpy(model({"source": source})).argmax(axis=1)
    assert (predicted == labels).mean() >= 0.95


def test_bag_classifier_ignores_the_order_of_two_words():
    """Both texts of a pair get the same logits but have different labels."""
    source, labels = texts_in_both_orders(0)
    model = MODELS["bag"]()
    reference.randomize(model)
    logits = ops.convert_to_numpy(model({"source": source}))
    np.testing.assert_allclose(logits[:64], logits[64:], atol=1e-5)
    assert (logits.argmax(axis=1) == labels).mean() == pytest.approx(0.5, abs=0.01)


def test_bag_classifier_learns_labels_from_word_counts():
    source, _ = texts_in_both_orders(0)
    # The label depends on the share of words from 13 on.
    labels = ((source >= 13).sum(axis=1) > ((source > 0) & (source < 13)).sum(axis=1)).astype(int)
    model = trained("bag", source, labels)
    predicted = ops.convert_to_numpy(model({"source": source})).argmax(axis=1)
    assert (predicted == labels).mean() >= 0.95


@pytest.mark.parametrize("name", MODELS)
def test_a_row_of_padding_has_finite_logits_of_its_own(name):
    model = MODELS[name]()
    reference.randomize(model)
    source = np.array([[0, 0, 0], [4, 5, 0]], "int32")
    logits = ops.convert_to_numpy(model({"source": source}))
    assert np.isfinite(logits).all()
    if name != "bag":
        np.testing.assert_allclose(logits[0], reference.named_arrays(model)["logits/bias"])


@pytest.mark.parametrize("name", MODELS)
def test_classifier_dropout_follows_the_seed(name):
    found = []
    for seed in (1, 1, 2):
        model = MODELS[name](dropout=0.3, seed=seed)
        for weight in model.trainable_weights:
            weight.assign(np.random.default_rng(0).normal(size=weight.shape))
        found.append(ops.convert_to_numpy(model({"source": SOURCE}, training=True)))
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() > 0


def test_classifier_adds_layers_to_the_graph_of_its_encoder():
    encoder = RecurrentTextEncoder(20, embedding_units=4, units=3, dtype="mixed_bfloat16")
    model = TextClassifier(encoder, 2, "last")
    assert model.encoder is encoder
    names = [weight.path for weight in encoder.weights]
    assert [weight.path for weight in model.weights] == [*names, "logits/kernel", "logits/bias"]
    assert model.get_layer("logits").dtype_policy.name == "mixed_bfloat16"


BAG = BagTextEncoder(20, embedding_units=4)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: BagTextEncoder(20, 0), "`embedding_units` must be a positive integer"),
        (lambda: RecurrentTextEncoder(20, cell="rnn"), "`cell` must be one of 'gru', 'lstm', rec"),
        (lambda: RecurrentTextEncoder(20, num_layers=0), "`num_layers` must be a positive"),
        (lambda: TransformerTextEncoder(20, num_layers=0), "`num_layers` must be a positive"),
        (lambda: TextClassifier(BAG, 0), "`num_classes` must be a positive integer, received 0"),
        (lambda: TextClassifier(BAG, "2"), "`num_classes` must be a positive integer"),
        (lambda: TextClassifier(BAG, 2, "sum"), "`pooling` must be one of 'mean', 'max', 'last'"),
        (lambda: TextClassifier(BAG, 2, hidden_units=-1), "`hidden_units` must be an integer, 0"),
    ],
)
def test_invalid_classifier_arguments_are_named_in_the_error(made, said):
    with pytest.raises(ValueError, match=said):
        made()
