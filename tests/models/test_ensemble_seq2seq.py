"""A deep ensemble as one model: the mean of independently trained members."""

import keras
import numpy as np
import pytest
from keras import ops
from weekly import SLOW_AND_WEEKLY

from keras_seq.losses.sequence_cross_entropy import SequenceCrossEntropy
from keras_seq.models import Ensemble, EnsembleSeq2Seq, RecurrentSeq2Seq, Transformer
from keras_seq.run.models import build_model, named_weights
from keras_seq.search import beam_search
from keras_seq.settings import SettingsError, load_settings
from keras_seq.training.training_model import StackedMembers

SOURCE = np.array([[5, 6, 3, 0], [7, 8, 9, 3]])
TARGET = np.array([[2, 4, 5], [2, 6, 0]])
INPUTS = {"source": SOURCE, "target": TARGET}


def recurrent(name):
    return RecurrentSeq2Seq(
        12, 11, embedding_units=4, encoder_units=4, decoder_units=8, attention_units=8, name=name
    )


def transformer(name):
    return Transformer(12, 11, 1, 1, units=8, feedforward_units=8, num_heads=2, name=name)


@pytest.fixture(params=[recurrent, pytest.param(transformer, marks=SLOW_AND_WEEKLY)])
def model(request):
    keras.utils.set_random_seed(1)
    return EnsembleSeq2Seq.of(request.param, 3)


def softmax(logits):
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def test_probabilities_are_the_mean_of_the_members(model):
    each = [softmax(ops.convert_to_numpy(member(INPUTS))) for member in model.members]
    found = np.exp(ops.convert_to_numpy(model(INPUTS)))
    np.testing.assert_allclose(found, np.mean(each, axis=0), rtol=1e-5, atol=1e-7)
    # They start from different weights.
    assert not np.allclose(each[0], each[1])


def test_search_finds_what_an_ensemble_of_separate_models_finds(model):
    joint = beam_search(model, ops.convert_to_tensor(SOURCE), max_length=6, beam_size=3)
    separate = beam_search(
        Ensemble(model.members), ops.convert_to_tensor(SOURCE), max_length=6, beam_size=3
    )
    np.testing.assert_array_equal(joint.tokens, separate.tokens)
    np.testing.assert_allclose(joint.scores, separate.scores, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.weekly
def test_attention_is_the_mean_of_the_members(model):
    found = model.with_attention()(INPUTS)
    each = [member.with_attention()(INPUTS)["attention"] for member in model.members]
    np.testing.assert_allclose(found["attention"], np.mean(each, axis=0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["logits"], model(INPUTS), rtol=1e-6)


def test_loss_in_training_is_the_mean_of_the_members_losses(model):
    targets = np.array([[4, 5, 3], [6, 3, 0]])
    loss = SequenceCrossEntropy(0.1, "sum")
    together = float(loss(targets, StackedMembers(model)(INPUTS)))
    each = [float(loss(targets, member(INPUTS))) for member in model.members]
    assert together == pytest.approx(np.mean(each), rel=1e-5)


def test_config_makes_a_model_of_the_same_weights(model, tmp_path):
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert set(named_weights(loaded)) == set(named_weights(model))
    np.testing.assert_allclose(loaded(INPUTS), model(INPUTS), rtol=1e-6)


def test_settings_build_the_members():
    settings = load_settings(
        preset="rnn-symbols",
        overrides={
            "model.members": 2,
            "model.encoder_units": 4,
            "model.decoder_units": 8,
            "model.embedding_units": 4,
            "tokenizer.joint": False,
        },
    )
    model = build_model(settings, 12, 11)
    assert len(model.members) == 2
    assert {name.split("/")[0] for name in named_weights(model)} == {"member_0", "member_1"}


@pytest.mark.parametrize("key", ["guided_alignment=1", "scheduled_sampling=linear"])
def test_what_members_cannot_be_trained_with_is_refused(key):
    overrides = ["model.members=2", "data.alignments=a", f"training.{key}"]
    with pytest.raises(SettingsError, match=f"training.{key.split('=')[0]}: received .*members"):
        load_settings(preset="rnn-small", overrides=overrides)
