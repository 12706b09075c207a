"""The guided alignment loss compared with NumPy, and its effect on attention in training."""

import keras
import numpy as np
import pytest
from keras import ops
from training.toy import killed_after, quiet_train, toy_settings

from keras_seq.data import BatchStream, TokenCorpus
from keras_seq.run import Run
from keras_seq.run.models import load_model
from keras_seq.settings import SettingsError, load_settings
from keras_seq.training.guided_alignment import GuidedAlignmentLoss

pytestmark = pytest.mark.slow

generator = np.random.default_rng(1)


@pytest.mark.torch
def test_guided_alignment_loss_is_weighted_cross_entropy_of_linked_rows():
    attention = generator.random((3, 4, 5)).astype("float32")
    attention /= attention.sum(-1, keepdims=True)
    alignment = generator.random((3, 4, 5)).astype("float32")
    alignment /= alignment.sum(-1, keepdims=True)
    alignment[1, 2] = 0
    weights = np.array([0.5, 2.0, 0.0], "float32")
    expected = 0.7 * -(alignment * np.log(attention) * weights[:, None, None]).sum()
    loss = GuidedAlignmentLoss(0.7)
    received = loss(ops.array(alignment), ops.array(attention), sample_weight=ops.array(weights))
    assert float(received) == pytest.approx(expected, rel=1e-5)


def test_guided_alignment_loss_stays_finite_on_padding():
    attention = ops.array([[[1.0, 0.0], [0.0, 0.0]]])
    alignment = ops.array([[[1.0, 0.0], [0.0, 0.0]]])
    assert float(GuidedAlignmentLoss()(alignment, attention)) == 0


def test_guided_alignment_loss_round_trips_and_rejects_a_negative_factor():
    loss = keras.losses.deserialize(keras.losses.serialize(GuidedAlignmentLoss(0.5)))
    assert loss.factor == 0.5
    with pytest.raises(ValueError, match="`factor` must not be negative, received -1"):
        GuidedAlignmentLoss(-1)


def write_alignments(folder):
    """Writes word alignments for the reversed letters of the toy task and returns the path."""
    line = " ".join(f"{i}-{4 - i}" for i in range(5))
    (folder / "links").write_text(f"{line}\n" * 200)
    return str(folder / "links")


def alignment_error(run):
    """Returns one minus the fraction of attention on aligned words."""
    corpus = TokenCorpus.open(run.train_directory)
    batch = BatchStream(corpus, batch_tokens=300, seed=1).batch(0)
    model = load_model(run, "latest").with_attention()
    inputs = {"source": batch["source"], "target": batch["target_input"]}
    attention = ops.convert_to_numpy(model(inputs)["attention"])
    return 1 - (attention * batch["alignment"]).sum() / batch["alignment"].sum()


RECURRENT = {
    "model.family": "rnn",
    "model.embedding_units": 16,
    "model.encoder_units": 8,
    "model.decoder_units": 16,
    "model.attention_units": 16,
}


@pytest.mark.weekly
def test_guided_alignment_brings_attention_closer_to_the_links(tmp_path):
    errors = {}
    for weight in (0.0, 1.0):
        settings = toy_settings(
            tmp_path,
            training__max_steps=60,
            training__ema=0.0,
            training__guided_alignment=weight,
            data__alignments=write_alignments(tmp_path),
        )
        settings = load_settings(base=settings.to_dict() | {"model": {}}, overrides=RECURRENT)
        path = tmp_path / str(weight)
        quiet_train(settings, path)
        errors[weight] = alignment_error(Run.open(path))
    assert errors[1.0] < 0.6 * errors[0.0], errors


@pytest.mark.weekly
def test_guided_alignment_training_resumes_bit_for_bit(tmp_path):
    """Also uses location-sensitive attention, scheduled sampling, dropout and frozen weights."""
    options = {
        "data__alignments": write_alignments(tmp_path),
        "training__guided_alignment": 1.0,
        "training__scheduled_sampling": "linear",
        "training__scheduled_sampling_steps": 3,
        "training__scheduled_sampling_rate": 1.0,
        "training__freeze": "encoder_0/*",
        "training__max_steps": 7,
        "training__checkpoint_every": 3,
    }
    model = RECURRENT | {"model.attention": "location", "model.dropout": 0.3}
    base = toy_settings(tmp_path, **options).to_dict() | {"model": {}}
    settings = load_settings(base=base, overrides=model)
    straight = tmp_path / "straight"
    quiet_train(settings, straight)
    killed = killed_after(3, straight, tmp_path / "killed")
    _, said = quiet_train(settings, killed)
    assert "resuming after step 3\n" in said
    one, other = (
        (run / "checkpoints" / "step-00000007" / "training.safetensors").read_bytes()
        for run in (straight, killed)
    )
    assert one == other


def test_guided_alignment_settings_reject_missing_links_and_a_wrong_layer(tmp_path):
    with pytest.raises(SettingsError, match="guided_alignment: received 1 without data.alignments"):
        toy_settings(tmp_path, training__guided_alignment=1.0)
    with pytest.raises(SettingsError, match="guided_alignment_layer: received 1, expected from -1"):
        toy_settings(
            tmp_path,
            training__guided_alignment=1.0,
            training__guided_alignment_layer=1,
            data__alignments="links",
        )
