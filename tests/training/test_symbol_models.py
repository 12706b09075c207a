"""Models for mappings between similar strings: copying and hard attention, from text to export."""

import random

import pytest
from stock_server import StockProcess, Tensor
from training.test_features import COLUMNS, FORMS, LINES, train_forms, write_forms
from training.toy import assert_equal_tensors, killed_after, tensors_of

import keras_seq
from keras_seq.run import Run
from keras_seq.serving import export_saved_model
from keras_seq.settings import SettingsError

MODELS = {
    "copy": {"model__copy": True, "training__unseen_tokens": 0.3},
    "hard": {"model__attention": "hard", "model__attention_units": 64},
}


@pytest.fixture(scope="module", params=MODELS)
def run(request, tmp_path_factory):
    return train_forms(tmp_path_factory.mktemp(request.param), **MODELS[request.param])


@pytest.mark.slow
@pytest.mark.weekly
def test_symbol_model_inflects_and_its_export_answers_alike(run, tmp_path):
    assert keras_seq.Translator.load(run)(LINES) == FORMS
    version = export_saved_model(Run.open(run), tmp_path / "served", verify=10)
    assert_stock_server_answers_alike(run, version)


def assert_stock_server_answers_alike(run, version):
    # Also letters that training never saw, no features, and features alone.
    lines = [*LINES, "ßЖ\tX;PL", "walk", "\tX"]
    parts = [line.partition("\t") for line in lines]
    inputs = {
        name: Tensor.row([row[i] for row in parts]) for name, i in (("text", 0), ("features", 2))
    }
    with StockProcess(version) as server:
        found = server.run("serving_default", inputs)["translation"].values
    assert [text.decode() for text in found] == keras_seq.Translator.load(run)(lines)


@pytest.mark.slow
def test_copying_transformer_resumes_exactly_and_is_exported(tmp_path):
    values = {
        "data.pairs": str(write_forms(tmp_path / "forms.tsv")),
        "data.valid_pairs": str(tmp_path / "forms.tsv"),
        "data.columns": COLUMNS,
        "model.copy": True,
        "model.members": 1,
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 2,
        "model.activation": "swiglu",
        "model.normalization": "rms",
        "model.units": 32,
        "model.feedforward_units": 32,
        "model.num_heads": 2,
        "training.unseen_tokens": 0.3,
        "training.batch_tokens": 400,
        "training.max_steps": 4,
        "training.validate_every": 2,
        "training.checkpoint_every": 2,
    }
    settings = keras_seq.load_settings(preset="transformer-symbols", overrides=values)
    keras_seq.train(settings, tmp_path / "straight", notice=[].append)
    stopped = killed_after(2, tmp_path / "straight", tmp_path / "stopped")
    keras_seq.train(settings, stopped, notice=[].append)
    assert_equal_tensors(tensors_of(stopped, 4), tensors_of(tmp_path / "straight", 4))
    version = export_saved_model(Run.open(stopped), tmp_path / "served", verify=0)
    assert_stock_server_answers_alike(stopped, version)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"model.attention": "hard", "model.copy": True}, "model.copy: received True"),
        (
            {"model.attention": "hard", "training.scheduled_sampling": "constant"},
            "training.scheduled_sampling: received 'constant', expected 'none' with",
        ),
        (
            {"model.attention": "hard", "training.word_dropout": 0.1},
            "training.word_dropout: received 0.1, expected 0 with model.attention 'hard'",
        ),
        ({"model.copy": True, "tokenizer.joint": False}, "tokenizer.joint: received False"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(overrides, message):
    with pytest.raises(SettingsError, match=message):
        keras_seq.load_settings(preset="rnn-symbols", overrides=overrides)


def test_copying_refuses_text_that_was_prepared_with_two_vocabularies(tmp_path, keras_seq_command):
    pairs = write_forms(tmp_path / "forms.tsv")
    prepared = tmp_path / "prepared"
    options = ["--columns", COLUMNS, "--preset", "rnn-symbols"]
    outcome = keras_seq_command("prepare", prepared, "--pairs", pairs, *options)
    assert outcome.code == 0, outcome.err
    options = ["--prepared", prepared, "--preset", "rnn-symbols", "--set", "model.copy=true"]
    outcome = keras_seq_command("train", tmp_path / "run", *options)
    assert outcome.code == 2
    assert "model.copy needs one vocabulary for source and target" in outcome.error


def write_copies(path, count, alphabet, longest):
    generator = random.Random(path.name)
    lines = [
        "".join(generator.choices(alphabet, k=generator.randint(1, longest))) for _ in range(count)
    ]
    path.write_text("".join(f"{line}\t{line}\n" for line in lines))
    return lines


@pytest.mark.slow
@pytest.mark.weekly
def test_copying_model_copies_letters_that_training_never_saw(tmp_path):
    write_copies(tmp_path / "train.tsv", 1000, "abcdefghijklm", 9)
    write_copies(tmp_path / "valid.tsv", 20, "abcdefghijklm", 9)
    values = {
        "data.pairs": str(tmp_path / "train.tsv"),
        "data.valid_pairs": str(tmp_path / "valid.tsv"),
        "tokenizer.kind": "char",
        "model.copy": True,
        "model.members": 1,
        "model.embedding_units": 64,
        "model.encoder_units": 64,
        "model.decoder_units": 128,
        "model.dropout": 0.0,
        "training.unseen_tokens": 0.4,
        "training.learning_rate": 0.005,
        "training.ema": 0.98,
        "training.max_steps": 400,
        "training.validate_every": 200,
        "training.checkpoint_every": 200,
    }
    settings = keras_seq.load_settings(preset="rnn-symbols", overrides=values)
    keras_seq.train(settings, tmp_path / "run", notice=[].append)
    unseen = write_copies(tmp_path / "unseen.tsv", 100, "nopqrstuvwxyz", 5)
    assert keras_seq.Translator.load(tmp_path / "run")(unseen) == unseen
