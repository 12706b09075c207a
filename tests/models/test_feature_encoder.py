"""Features that are encoded apart from the tokens of their source."""

from types import SimpleNamespace

import numpy as np
import pytest
from keras import ops

from keras_seq.models import RecurrentSeq2Seq, Transformer
from keras_seq.models.feature_encoder import encode_at_the_front, mean_of_features, split_mask
from keras_seq.models.recurrent_encoder import make_bidirectional

KINDS = ("linear", "recurrent", "transformer")
# Ids of 15 and above are features.
SOURCE = np.array([[5, 6, 7, 16, 17, 0, 0], [8, 15, 18, 19, 0, 0, 0], [9, 10, 11, 0, 0, 0, 0]])
TARGET = np.array([[2, 5, 6], [2, 7, 8], [2, 9, 10]])
RECURRENT = {
    "embedding_units": 8,
    "encoder_units": 4,
    "decoder_units": 8,
    "attention_units": 8,
    "num_features": 5,
}
TRANSFORMER = {
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "units": 8,
    "feedforward_units": 16,
    "num_heads": 2,
    "num_features": 5,
}


def recurrent(kind, **options):
    return RecurrentSeq2Seq(20, 20, **RECURRENT, feature_encoder=kind, seed=1, **options)


def transformer(kind, **options):
    return Transformer(20, 20, **TRANSFORMER, feature_encoder=kind, seed=1, **options)


def logits(model, source):
    return np.asarray(model({"source": source, "target": TARGET}))


@pytest.mark.jax
@pytest.mark.torch
def test_recurrent_feature_encoder_equals_its_layer_on_the_features_alone():
    x = np.random.default_rng(1).normal(size=(3, 7, 8)).astype("float32")
    layer = make_bidirectional("gru", 3, "float32", "features")
    encoded = encode_at_the_front(layer, ops.convert_to_tensor(x), SOURCE >= 15)
    for row, begin, end in ((0, 3, 5), (1, 1, 4)):
        alone = layer(ops.convert_to_tensor(x[row : row + 1, begin:end]))[0]
        np.testing.assert_allclose(
            ops.convert_to_numpy(encoded)[row, begin:end],
            ops.convert_to_numpy(alone)[0],
            atol=1e-6,
        )


@pytest.mark.jax
def test_masks_of_tokens_and_features_have_their_padding_at_the_end():
    arguments = SimpleNamespace(feature_encoder="linear", source_vocabulary_size=20, num_features=5)
    # With the end token, which batches add.
    source = np.array([[5, 6, 16, 17, 3, 0], [5, 6, 7, 3, 0, 0]])
    tokens, features = map(np.asarray, split_mask(ops.convert_to_tensor(source), arguments))
    np.testing.assert_array_equal(tokens, [[1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0]])
    np.testing.assert_array_equal(features, [[0, 0, 1, 1, 0, 0], [0] * 6])
    arguments.feature_encoder = "none"
    tokens, features = split_mask(ops.convert_to_tensor(source), arguments)
    np.testing.assert_array_equal(np.asarray(tokens), source != 0)
    assert features is None


@pytest.mark.jax
def test_mean_of_features_equals_numpy():
    x = np.random.default_rng(1).normal(size=(3, 7, 4)).astype("float32")
    mean = mean_of_features(ops.convert_to_tensor(x), ops.convert_to_tensor(SOURCE >= 15))
    expected = [x[0, 3:5].mean(0), x[1, 1:4].mean(0), np.zeros(4)]
    np.testing.assert_allclose(np.asarray(mean), expected, atol=1e-6)


@pytest.mark.parametrize("make", [recurrent, transformer])
@pytest.mark.parametrize("kind", KINDS)
def test_only_a_recurrent_encoder_knows_the_order_of_features(make, kind):
    model = make(kind)
    swapped = SOURCE.copy()
    swapped[0, 3:5] = [17, 16]
    difference = np.abs(logits(model, SOURCE)[0] - logits(model, swapped)[0]).max()
    assert (difference > 1e-4) == (kind == "recurrent")
    other = SOURCE.copy()
    other[0, 4] = 19
    assert np.abs(logits(model, SOURCE)[0] - logits(model, other)[0]).max() > 1e-4


@pytest.mark.parametrize("make", [recurrent, transformer])
def test_the_encoder_of_tokens_does_not_see_features(make):
    model = make("linear")
    tokens = np.where(SOURCE < 15, SOURCE, 0)
    memory, without = model.encoder(SOURCE), model.encoder(tokens)
    if make is recurrent:
        # The first 2U numbers are the outputs of the encoder of the tokens.
        values = [np.asarray(each["value"])[..., :8] for each in (memory, without)]
        np.testing.assert_array_equal(memory["mask"], tokens != 0)
        np.testing.assert_allclose(memory["state_0_0"], without["state_0_0"], atol=1e-6)
    else:
        values = [np.asarray(each["value_0"]).transpose(0, 2, 1, 3) for each in (memory, without)]
        np.testing.assert_array_equal(memory["mask"], SOURCE != 0)
    for row, length in enumerate((tokens != 0).sum(1)):
        np.testing.assert_allclose(values[0][row, :length], values[1][row, :length], atol=1e-6)


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="`feature_encoder` must be one of"):
        recurrent("deep")
    with pytest.raises(ValueError, match="`num_features` must be a part of the source vocabulary"):
        Transformer(20, 20, **(TRANSFORMER | {"num_features": 0}), feature_encoder="linear")
    with pytest.raises(ValueError, match="`num_features` must be a part of the source vocabulary"):
        Transformer(20, 20, **(TRANSFORMER | {"num_features": 20}))
    with pytest.raises(ValueError, match="even units, received 7"):
        RecurrentSeq2Seq(
            20, 20, **(RECURRENT | {"embedding_units": 7}), feature_encoder="recurrent"
        )
