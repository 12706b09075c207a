"""Every task trains on torch, resumes bit for bit there, and its model is used there."""

import keras
import pytest
from label_runs import label_settings
from sound_files import write_sounds, write_streams
from training.toy import assert_equal_tensors, killed_after, tensors_of, toy_settings

import keras_seq
from keras_seq.settings import load_settings

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(keras.backend.backend() != "torch", reason="of torch"),
]

FOUR_UPDATES = {
    "training.max_steps": 4,
    "training.validate_every": 2,
    "training.checkpoint_every": 2,
    "training.keep_checkpoints": 100,
}
RECURRENT = {
    "model.embedding_units": 8,
    "model.encoder_units": 8,
    "model.decoder_units": 8,
    "model.attention_units": 8,
    "model.members": 1,
}


def translation(folder):
    toy_settings(folder)
    files = {"data.pairs": "train.tsv", "data.valid_pairs": "valid.tsv"}
    files = {name: str(folder / path) for name, path in files.items()}
    shared = {"tokenizer.kind": "unigram", "training.batch_tokens": 300, "search.max_length": 8}
    return files | shared | RECURRENT


def transformer(folder):
    return toy_settings(folder, training__scheduled_sampling="constant", **FOUR_UPDATES)


def recurrent(folder):
    return load_settings(preset="rnn-small", overrides=translation(folder) | FOUR_UPDATES)


def copying(folder):
    values = translation(folder) | {"tokenizer.kind": "char", "model.copy": True}
    return load_settings(preset="rnn-symbols", overrides=values | FOUR_UPDATES)


def hard_attention(folder):
    values = translation(folder) | {"tokenizer.kind": "char", "model.attention": "hard"}
    return load_settings(preset="rnn-symbols", overrides=values | FOUR_UPDATES)


def labels(task):
    return lambda folder: label_settings(folder, task, **FOUR_UPDATES)


def of_text(preset, **sizes):
    def settings(folder):
        toy_settings(folder)
        files = {"data.text": "train.tsv", "data.valid_text": "valid.tsv"}
        values = {name: str(folder / path) for name, path in files.items()}
        values |= {f"model.{name}": size for name, size in sizes.items()}
        return load_settings(
            preset=preset, overrides=values | FOUR_UPDATES | {"search.max_length": 8}
        )

    return settings


def speech(folder):
    values = {
        "data.pairs": str(write_sounds(folder / "train", 6, 1)),
        "data.valid_pairs": str(write_sounds(folder / "valid", 3, 2)),
        "model.num_mels": 8,
        "model.frame_step": 0.02,
        "model.frequency_width": 2,
        "model.convolution_units": 4,
        "model.num_layers": 1,
        "model.units": 4,
        "data.bucket_width": 4000,
        "training.batch_tokens": 40_000,
    }
    return load_settings(preset="speech-ctc", overrides=values | FOUR_UPDATES)


def wake_word(folder):
    values = {
        "data.pairs": str(write_streams(folder / "train", 6, 1)),
        "data.valid_pairs": str(write_streams(folder / "valid", 3, 2)),
        "data.bucket_width": 4000,
        "model.num_mels": 8,
        "model.frame_step": 0.02,
        "model.units": 4,
        "training.batch_tokens": 60_000,
    }
    return load_settings(preset="wake-word", overrides=values | FOUR_UPDATES)


@pytest.mark.parametrize(
    "settings",
    [
        transformer,
        recurrent,
        copying,
        hard_attention,
        pytest.param(labels("classify"), id="classify"),
        pytest.param(labels("tag"), id="tag"),
        pytest.param(of_text("lm-gru", embedding_units=8, units=16), id="language model"),
        pytest.param(
            of_text("vae", latent_units=4, embedding_units=8, encoder_units=8, decoder_units=8),
            id="autoencoder",
        ),
        speech,
        wake_word,
    ],
)
def test_resumed_training_ends_with_the_same_state(tmp_path, settings):
    settings = settings(tmp_path)
    keras_seq.train(settings, tmp_path / "straight", notice=[].append)
    stopped = killed_after(2, tmp_path / "straight", tmp_path / "stopped")
    keras_seq.train(settings, stopped, notice=[].append)
    for part in ("weights", "training"):
        straight = tensors_of(tmp_path / "straight", 4, part)
        assert_equal_tensors(tensors_of(stopped, 4, part), straight)
