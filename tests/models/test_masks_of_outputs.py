"""Losses and metrics of Keras ignore padding in the outputs of every model with steps."""

import keras
import numpy as np
import pytest
from weekly import SLOW_AND_WEEKLY

from keras_seq import models

VOCABULARY, TAGS = 12, 3
SOURCE = np.array([[4, 5, 11, 4, 9], [7, 6, 3, 0, 0], [8, 0, 0, 0, 0]], "int32")
TARGET = np.array([[2, 5, 6, 7], [2, 9, 0, 0], [2, 0, 0, 0]], "int32")
FOLLOWING = np.array([[5, 6, 7, 3], [9, 3, 0, 0], [3, 0, 0, 0]], "int32")
BEGINS = np.array([[1, 0, 1, 1, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 0]], "bool")
FEATURES = np.random.default_rng(0).normal(size=(3, 5, 6)).astype("float32")
LENGTHS = np.array([5, 3, 1], "int32")
RECURRENT = {"embedding_units": 4, "encoder_units": 4, "decoder_units": 8, "attention_units": 4}
TRANSFORMER = {"units": 8, "feedforward_units": 8, "num_heads": 2}
IDS = {"source": SOURCE, "target": TARGET}
SOUND = {"features": FEATURES, "lengths": LENGTHS}


def recurrent(**options):
    return models.RecurrentSeq2Seq(VOCABULARY, VOCABULARY, **RECURRENT, **options)


def transformer(norm="pre"):
    return models.Transformer(VOCABULARY, VOCABULARY, 1, 1, **TRANSFORMER, norm=norm)


def vae(**options):
    sizes = {"embedding_units": 4, "encoder_units": 4, "decoder_units": 8}
    return models.SequenceVAE(VOCABULARY, latent_units=3, **sizes, **options)


def language_model(**options):
    return models.RecurrentLanguageModel(VOCABULARY, embedding_units=4, units=8, **options)


def captioner():
    encoder = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    return models.ConditionedGenerator(encoder, VOCABULARY, embedding_units=4, units=8)


def backbone():
    sizes = {"num_layers": 1, "positions": 16, **TRANSFORMER}
    encoder = models.BackboneTextEncoder(VOCABULARY, **sizes)
    return models.BackboneSeq2Seq(encoder, VOCABULARY, num_decoder_layers=1, **TRANSFORMER)


def recognizer():
    sizes = RECURRENT | {"num_encoder_layers": 2}
    return models.AttentionRecognizer(VOCABULARY, 6, **sizes)


WRITERS = {
    "recurrent": (recurrent, IDS),
    "recurrent-deep": (lambda: recurrent(num_decoder_layers=2, attention="luong"), IDS),
    "recurrent-tied": (lambda: recurrent(tie_output=True), IDS),
    "recurrent-convolutional": (lambda: recurrent(encoder="convolutional"), IDS),
    "transformer": (transformer, IDS),
    "transformer-post": (lambda: transformer("post"), IDS),
    "backbone": (backbone, IDS),
    "language_model": (language_model, IDS),
    "language_model-untied": (lambda: language_model(tie_output=False, num_layers=2), IDS),
    "transformer_language_model": (
        lambda: models.TransformerLanguageModel(VOCABULARY, 1, **TRANSFORMER),
        IDS,
    ),
    "vae": (vae, IDS),
    "vae-untied": (lambda: vae(tie_output=False), IDS),
    "captioner": (captioner, {"source": FEATURES[:, 0, :4], "target": TARGET}),
    "recognizer": (recognizer, {"source": SOUND, "target": TARGET}),
}


def perplexing(logits, true, real):
    """Accuracy and mean cross-entropy of the real steps."""
    shifted = logits - logits.max(-1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    chosen = np.take_along_axis(log_probabilities, true[..., None], -1)[..., 0]
    return (logits.argmax(-1) == true)[real].mean(), -chosen[real].mean()


def evaluated(model, inputs, true):
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["sparse_categorical_accuracy"],
    )
    return model.evaluate(inputs, true, batch_size=3, verbose=0, return_dict=True)


@pytest.mark.parametrize(
    "name",
    # The variants of a family differ in how their logits are made.
    [pytest.param(name, marks=SLOW_AND_WEEKLY if "-" in name else []) for name in WRITERS],
)
def test_keras_counts_no_padding_of_a_target(name):
    make, inputs = WRITERS[name]
    keras.utils.set_random_seed(1)
    model = make()
    logits = model.predict_on_batch(inputs)
    real = FOLLOWING != 0
    # Some real tokens are right and no padding is, so that counting padding changes the result.
    true = np.where(np.arange(4) % 2, FOLLOWING, logits.argmax(-1)).astype("int32")
    true = np.where(real, true, 0)
    accuracy, loss = perplexing(logits, true, real)
    found = evaluated(model, inputs, true)
    np.testing.assert_allclose(found["sparse_categorical_accuracy"], accuracy, rtol=1e-5)
    np.testing.assert_allclose(found["loss"], loss, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "crf"),
    [
        ("recurrent", True),
        ("transformer", False),
        pytest.param("recurrent", False, marks=SLOW_AND_WEEKLY),
        pytest.param("transformer", True, marks=SLOW_AND_WEEKLY),
    ],
)
def test_keras_counts_the_first_tokens_of_words_alone(kind, crf):
    keras.utils.set_random_seed(1)
    if kind == "recurrent":
        encoder = models.RecurrentTextEncoder(VOCABULARY, embedding_units=4, units=4)
    else:
        encoder = models.TransformerTextEncoder(VOCABULARY, 1, **TRANSFORMER)
    model = models.TextTagger(encoder, TAGS, crf)
    inputs = {"source": SOURCE, "begins": BEGINS}
    found = model.predict_on_batch(inputs)
    real = BEGINS & (SOURCE != 0)
    true = np.where(np.arange(5) % 2, 1, found["logits"].argmax(-1)).astype("int32")
    true = np.where(real, true, 0)
    accuracy, loss = perplexing(found["logits"], true, real)
    model.compile(
        loss={"logits": keras.losses.SparseCategoricalCrossentropy(from_logits=True)},
        metrics={"logits": ["sparse_categorical_accuracy"]},
    )
    scores = model.evaluate(inputs, {"logits": true, "tags": true}, verbose=0, return_dict=True)
    np.testing.assert_allclose(scores["loss"], loss, rtol=1e-5)
    np.testing.assert_allclose(scores["logits_sparse_categorical_accuracy"], accuracy, rtol=1e-5)


@pytest.mark.parametrize(
    "make_encoder",
    [
        lambda: models.BagTextEncoder(VOCABULARY, embedding_units=4),
        lambda: models.RecurrentTextEncoder(VOCABULARY, embedding_units=4, units=4),
        lambda: models.TransformerTextEncoder(VOCABULARY, 1, **TRANSFORMER),
    ],
    ids=["bag", "recurrent", "transformer"],
)
def test_keras_counts_every_row_of_a_classifier(make_encoder):
    keras.utils.set_random_seed(1)
    model, true = models.TextClassifier(make_encoder(), TAGS), np.array([0, 2, 1], "int32")
    logits = model.predict_on_batch({"source": SOURCE})
    accuracy, loss = perplexing(logits, true, np.ones(3, "bool"))
    found = evaluated(model, {"source": SOURCE}, true)
    np.testing.assert_allclose(found["sparse_categorical_accuracy"], accuracy, rtol=1e-5)
    np.testing.assert_allclose(found["loss"], loss, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.weekly
def test_keras_counts_the_real_frames_of_a_sound_alone():
    keras.utils.set_random_seed(1)
    model = models.CTCRecognizer(
        VOCABULARY, 6, strides=(1,), convolution_units=4, num_layers=1, units=4
    )
    logits = model.predict_on_batch(SOUND)
    real = np.arange(logits.shape[1]) < LENGTHS[:, None]
    true = np.where(np.arange(logits.shape[1]) % 2, 3, logits.argmax(-1)).astype("int32")
    accuracy, loss = perplexing(logits, true, real)
    found = evaluated(model, SOUND, true)
    np.testing.assert_allclose(found["sparse_categorical_accuracy"], accuracy, rtol=1e-5)
    np.testing.assert_allclose(found["loss"], loss, rtol=1e-5)

    detector = models.TriggerWordDetector(6, units=4)
    heard = detector.predict_on_batch(SOUND)
    said = (np.arange(5)[None, :, None] % 2 == 0) & np.ones((3, 1, 1), "bool")
    detector.compile(loss="mse", metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)])
    (right,) = detector.evaluate(SOUND, said.astype("int32"), verbose=0)[1:]
    real = np.arange(5) < LENGTHS[:, None]
    np.testing.assert_allclose(right, ((heard > 0) == said)[real].mean(), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.weekly
def test_models_with_further_outputs_carry_the_mask_too():
    keras.utils.set_random_seed(1)
    for model in (
        recurrent().with_attention(),
        transformer().with_attention(),
        vae().with_posterior,
    ):
        found = model.predict_on_batch(IDS)
        accuracy, loss = perplexing(found["logits"], FOLLOWING, FOLLOWING != 0)
        # Keras expects targets for every output, even for outputs without a loss.
        true = {name: np.zeros(output.shape) for name, output in found.items()}
        model.compile(
            loss={"logits": keras.losses.SparseCategoricalCrossentropy(from_logits=True)},
            metrics={"logits": ["sparse_categorical_accuracy"]},
        )
        scores = model.evaluate(IDS, true | {"logits": FOLLOWING}, verbose=0, return_dict=True)
        np.testing.assert_allclose(scores["loss"], loss, rtol=1e-5)
        np.testing.assert_allclose(
            scores["logits_sparse_categorical_accuracy"], accuracy, rtol=1e-5
        )
