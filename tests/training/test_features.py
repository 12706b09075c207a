"""Pairs with features: training, translation, evaluation, export and wrong input."""

import json
import shutil

import numpy as np
import pytest
from serving.test_saved_model import Served

import keras_seq
from keras_seq import litert, runtime
from keras_seq.preparation import open_or_prepare, resolve_settings
from keras_seq.run import Run
from keras_seq.serving import (
    SavedModelTranslator,
    export_litert,
    export_onnx,
    export_saved_model,
)
from keras_seq.serving.ctranslate2_spec import require_transformer
from keras_seq.serving.http.model import LoadedModel
from keras_seq.settings import SettingsError
from keras_seq.text import FeatureTokenizer, InputError

INPUTS = ("text", "features")
COLUMNS = "source=1,target=2,features=3"
ENDINGS = {"PL": "s", "PST": "ed", "ING": "ing"}
STEMS = ["walk", "talk", "look", "cook", "jump", "play", "call", "kick", "open", "form"]


def write_forms(path, stems=STEMS):
    lines = [
        f"{stem}\t{stem}{ending}\tX;{name}\n" for stem in stems for name, ending in ENDINGS.items()
    ]
    path.write_text("".join(lines))
    return path


def train_forms(folder, **overrides):
    folder.mkdir(parents=True, exist_ok=True)
    data = write_forms(folder / "forms.tsv")
    values = {
        "data.pairs": str(data),
        "data.valid_pairs": str(data),
        "data.columns": COLUMNS,
        "data.concatenation": 0.0,
        "model.members": 1,
        "model.embedding_units": 32,
        "model.encoder_units": 32,
        "model.decoder_units": 64,
        "model.dropout": 0.0,
        "training.batch_tokens": 400,
        "training.learning_rate": 0.01,
        "training.schedule": "constant",
        "training.ema": 0.9,
        "training.max_steps": 150,
        "training.validate_every": 75,
        "training.checkpoint_every": 75,
    }
    values |= {key.replace("__", "."): value for key, value in overrides.items()}
    settings = keras_seq.load_settings(preset="rnn-symbols", overrides=values)
    keras_seq.train(settings, folder / "run", notice=[].append)
    return folder / "run"


@pytest.fixture(scope="module")
def forms_run(tmp_path_factory):
    return train_forms(tmp_path_factory.mktemp("forms"))


LINES = [f"{stem}\tX;{name}" for stem in STEMS[:4] for name in ENDINGS]
FORMS = [f"{stem}{ending}" for stem in STEMS[:4] for ending in ENDINGS.values()]


@pytest.mark.weekly
@pytest.mark.slow
def test_features_decide_the_form(forms_run, keras_seq_command):
    tokenizer = Run.open(forms_run).source_tokenizer
    assert isinstance(tokenizer, FeatureTokenizer)
    assert tokenizer.features.names == ("ING", "PL", "PST", "X")
    assert keras_seq.Translator.load(forms_run)(LINES) == FORMS
    stdin = b"walk\tX;PST\nwalk\nwalk\tX;FUT\n"
    outcome = keras_seq_command("translate", forms_run, stdin=stdin)
    assert outcome.code == 0 and outcome.lines[0] == "walked"
    assert (
        "lines 1 to 3: 1 without features after a tab; the feature 'FUT' is not in the training "
        "text" in outcome.err
    )


@pytest.mark.weekly
@pytest.mark.slow
def test_commands_report_features_that_training_never_saw(forms_run, tmp_path, keras_seq_command):
    message = "the feature 'FUT' is not in the training text"
    (tmp_path / "source").write_text("walk\tX;FUT\n")
    (tmp_path / "target").write_text("walked\n")
    files = tmp_path / "source", tmp_path / "target"
    for options in (["likelihood"], ["diagnose", "--beam-sizes", 1]):
        outcome = keras_seq_command(options[0], forms_run, *files, *options[1:])
        assert outcome.code == 0 and message in outcome.err
    (tmp_path / "valid.tsv").write_text("walk\twalked\tX;FUT\n")
    data = ["--pairs", write_forms(tmp_path / "forms.tsv"), "--columns", COLUMNS]
    valid = ["--valid-pairs", tmp_path / "valid.tsv"]
    outcome = keras_seq_command("train", tmp_path / "run", *data, *valid, "--dry-run")
    assert outcome.code == 0 and f"validation: {message}" in outcome.err


@pytest.mark.weekly
@pytest.mark.slow
def test_features_are_read_by_evaluate(forms_run, tmp_path, keras_seq_command):
    run = shutil.copytree(forms_run, tmp_path / "run")
    test = write_forms(tmp_path / "test.tsv", ["walk", "cook"])
    outcome = keras_seq_command("evaluate", run, "--pairs", test, "-m", "exact", "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["metrics"]["exact"]["value"] == 100.0
    # The baseline copies the source without its features. Each form is a source and an ending.
    outcome = keras_seq_command("evaluate", run, "--pairs", test, "-m", "cer", "--json")
    forms = [line.split("\t")[1] for line in test.read_text().splitlines()]
    rate = 100 * sum(len(form) - 4 for form in forms) / sum(map(len, forms))
    found = json.loads(outcome.out)["baseline"]["metrics"]["cer"]["value"]
    assert found == pytest.approx(rate)
    # Nor does a diagnosis count features as words that were not copied.
    found = keras_seq.diagnose(run, ["walk\tX;PST"] * 2, ["walk", "walked"], beam_sizes=[1])
    assert [line.reference.copies for line in found.lines] == [True, False]
    options = ["--pairs", test, "--columns", "source=1,target=2"]
    outcome = keras_seq_command("evaluate", run, *options)
    assert outcome.code == 2 and "expected the column of features" in outcome.error


@pytest.mark.slow
@pytest.mark.weekly
def test_export_has_an_input_of_features(forms_run, tmp_path):
    notices = []
    version = export_saved_model(
        Run.open(forms_run), tmp_path / "served", verify=10, notice=notices.append
    )
    assert "10 lines of the validation text come out" in notices[0]
    served = Served(version)
    parts = [line.split("\t") for line in [*LINES, "walk\tX; FUT ;", "\tX", "talk\t"]]
    columns = [
        np.array([part.encode() for part in column], object) for column in zip(*parts, strict=True)
    ]
    answer = served("serving_default", text=columns[0], features=columns[1])
    loaded = keras_seq.Translator.load(forms_run)
    expected = loaded(["\t".join(pair) for pair in parts])
    assert [text.decode() for text in answer["translation"]] == expected
    assert SavedModelTranslator(version)(LINES) == FORMS
    hosted = LoadedModel(version, 1).run("serving_default", dict(zip(INPUTS, columns, strict=True)))
    assert [text.decode() for text in hosted["translation"]] == expected
    guide = (tmp_path / "served" / "serving" / "README.md").read_text()
    assert 'request.inputs["features"]' in guide and "`features`, one string a row" in guide


@pytest.mark.slow
@pytest.mark.weekly
def test_features_with_an_encoder_of_their_own_decide_the_form(tmp_path):
    """Hard attention moves over the letters alone, and reads the features at each of them."""
    run = train_forms(tmp_path, model__feature_encoder="linear", model__attention="hard")
    assert keras_seq.Translator.load(run)(LINES) == FORMS
    export_saved_model(Run.open(run), tmp_path / "served", verify=0)
    assert SavedModelTranslator(tmp_path / "served" / "1")(LINES) == FORMS


@pytest.mark.slow
@pytest.mark.weekly
def test_a_transformer_with_encoded_features_is_exported(tmp_path):
    values = {
        "data.pairs": str(write_forms(tmp_path / "forms.tsv")),
        "data.columns": COLUMNS,
        "model.family": "transformer",
        "model.feature_encoder": "recurrent",
        "model.units": 16,
        "model.feedforward_units": 16,
        "model.num_heads": 2,
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "tokenizer.kind": "char",
        "tokenizer.joint": False,
        "training.max_steps": 2,
    }
    keras_seq.train(keras_seq.load_settings(overrides=values), tmp_path / "run", notice=[].append)
    expected = keras_seq.Translator.load(tmp_path / "run")(LINES)
    run = Run.open(tmp_path / "run")
    export_saved_model(run, tmp_path / "served", verify=0)
    assert SavedModelTranslator(tmp_path / "served" / "1")(LINES) == expected
    assert runtime.load(export_onnx(run, tmp_path / "onnx", verify=0))(LINES) == expected
    file = export_litert(run, tmp_path / "forms.tflite", verify=0, max_input=20)
    assert litert.load(file)(LINES) == expected


def test_a_feature_encoder_without_features_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="expected 'none' without features in data.columns"):
        keras_seq.load_settings(overrides={"model.feature_encoder": "linear"})
    # A prepared directory may have features or not.
    values = {"data.prepared": str(tmp_path), "model.feature_encoder": "linear"}
    keras_seq.load_settings(overrides=values)


def test_features_of_a_training_without_any_are_refused(tmp_path):
    path = tmp_path / "forms.tsv"
    path.write_text("walk\twalks\t\n" * 30)
    values = {"data.pairs": str(path), "data.columns": COLUMNS}
    settings = keras_seq.load_settings(preset="rnn-symbols", overrides=values)
    with pytest.raises(InputError, match="no pair has features"):
        keras_seq.train(settings, tmp_path / "run", notice=[].append)
    path.write_text("walk\twalks\tPL\nwalk\twalked\n")
    with pytest.raises(InputError, match=r"forms.tsv:2: 2 columns .*, expected at least 3"):
        keras_seq.train(settings, tmp_path / "run", notice=[].append)


@pytest.mark.parametrize("override", ["training.subword_alpha=0.1", "data.alignments=a.txt"])
def test_settings_that_features_exclude_are_refused(tmp_path, override):
    values = [f"data.pairs={tmp_path / 'a.tsv'}", f"data.columns={COLUMNS}", override]
    with pytest.raises(SettingsError, match="expected .* with features in data.columns"):
        keras_seq.load_settings(overrides=values)


def write_pronunciations(path):
    """Writes 300 words and sounds, whose joined pairs the model learns, with a feature."""
    letters = "abcdefgh"
    words = [a + b + c for a in letters for b in letters for c in letters][:300]
    path.write_text("".join(f"{word}\t{' '.join(word.upper())}\tX\n" for word in words))
    return {"data.pairs": str(path), "data.columns": COLUMNS}


def test_pairs_with_features_are_never_joined(tmp_path):
    values = write_pronunciations(tmp_path / "pairs.tsv")
    notices = []
    settings, counts = resolve_settings(overrides=values)
    run = open_or_prepare(settings, tmp_path / "run", notice=notices.append, counts=counts)
    run.unlock()
    assert run.target_tokenizer.kind == "word"
    assert not any("pairs added" in line for line in notices)
    # Without features, the same pairs are joined.
    without, _ = resolve_settings(overrides=values | {"data.columns": "source=1,target=2"})
    assert (without.data.concatenation, settings.data.concatenation) == (2.0, 0.0)


def test_joined_pairs_with_features_are_refused(tmp_path):
    values = write_pronunciations(tmp_path / "pairs.tsv") | {"data.concatenation": 0.5}
    settings, counts = resolve_settings(overrides=values)
    message = "data.concatenation: received 0.5, expected 0 with features in data.columns"
    with pytest.raises(SettingsError, match=message):
        open_or_prepare(settings, tmp_path / "run", counts=counts)
    assert not (tmp_path / "run").exists()


def test_ctranslate2_refuses_features(tmp_path):
    values = {"data.pairs": "a.tsv", "data.columns": COLUMNS}
    run = Run.create(tmp_path / "run", keras_seq.load_settings(overrides=values))
    with pytest.raises(InputError, match="CTranslate2 reads no features of pairs"):
        require_transformer(run)


def test_joint_vocabulary_with_features_is_refused(tmp_path):
    values = {"data.pairs": str(write_forms(tmp_path / "a.tsv")), "data.columns": COLUMNS}
    overrides = values | {"tokenizer.joint": True, "tokenizer.kind": "bpe"}
    settings = keras_seq.load_settings(preset="rnn-symbols", overrides=overrides)
    with pytest.raises(SettingsError, match=r"tokenizer.joint: received True, expected False with"):
        keras_seq.train(settings, tmp_path / "run", notice=[].append)
