"""The task `speech`: from files of recordings to a run, transcripts, scores and an export."""

import base64
import json

import numpy as np
import pytest
from serving.test_saved_model import Served
from sound_files import RATE, write_sounds, write_wave
from training.toy import assert_equal_tensors, killed_after, tensors_of

import keras_seq
from keras_seq import litert, runtime
from keras_seq.data import read_sound
from keras_seq.run import Run
from keras_seq.serving import export_litert, export_onnx, export_saved_model
from keras_seq.serving.http.limits import Limits
from keras_seq.serving.http.model import LoadedModel
from keras_seq.serving.http.sounds import read_audio
from keras_seq.settings import load_settings
from keras_seq.text import InputError

SHARED = {"data.bucket_width": 4000, "training.batch_tokens": 40_000}
SMALL = {
    **SHARED,
    "model.num_mels": 16,
    "model.frame_step": 0.02,
    "model.frequency_width": 2,
    "model.convolution_units": 16,
    "model.num_layers": 1,
    "model.units": 16,
    "model.dropout": 0.0,
    "training.learning_rate": 0.02,
    "training.schedule": "constant",
    "training.ema": 0.9,
    "training.max_steps": 160,
    "training.validate_every": 80,
    "training.checkpoint_every": 80,
}


def train(folder, run, preset="speech-ctc", **overrides):
    values = {
        "data.pairs": str(write_sounds(folder, 60, 1, mixed=True)),
        "data.valid_pairs": str(write_sounds(folder, 12, 2)),
        **(SMALL if preset == "speech-ctc" else SHARED),
        **{key.replace("__", "."): value for key, value in overrides.items()},
    }
    settings = load_settings(preset=preset, overrides=values)
    notices = []
    keras_seq.train(settings, run, notice=notices.append)
    return notices


@pytest.fixture(scope="module")
def speech_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech")
    train(folder / "sounds", folder / "run")
    return folder / "run", folder / "sounds"


@pytest.mark.slow
def test_recordings_are_transcribed_and_scored(speech_run, keras_seq_command):
    run, sounds = speech_run
    assert Run.open(run).settings.data.sample_rate == RATE
    lines = [line.split("\t") for line in (sounds / "2.tsv").read_text().splitlines()]
    paths = [str(sounds / name) for name, _ in lines]
    flac, words = (sounds / "1.tsv").read_text().splitlines()[9].split("\t")
    outcome = keras_seq_command("transcribe", run, *paths, sounds / flac)
    assert outcome.code == 0, outcome.err
    assert flac.endswith(".flac")
    assert outcome.lines == [*(words for _, words in lines), words]
    outcome = keras_seq_command(
        "transcribe", run, "--format", "jsonl", "--n-best", 2, stdin=paths[0].encode() + b"\n"
    )
    (answer,) = map(json.loads, outcome.lines)
    assert answer["path"] == paths[0] and answer["texts"][0]["text"] == lines[0][1]
    scores = [text["score"] for text in answer["texts"]]
    assert len(scores) == 2 and scores == sorted(scores, reverse=True)
    # Names in the file of a test set are relative to it.
    outcome = keras_seq_command("evaluate", run, "--pairs", sounds / "2.tsv", "--json")
    values = json.loads(outcome.out)
    assert values["metrics"]["wer"]["value"] == 0 and values["metrics"]["exact"]["value"] == 100
    assert values["baseline"]["metrics"]["wer"]["value"] > 50
    page = keras_seq.report(run)
    assert "EXACT" in page and "samples" in page and paths[0] in page


@pytest.mark.slow
def test_export_takes_samples_and_gives_the_texts_of_the_run(speech_run, tmp_path):
    run, sounds = speech_run
    notices = []
    version = export_saved_model(
        Run.open(run), tmp_path / "served", verify=5, n_best=2, notice=notices.append
    )
    assert "5 recordings come out as in Python" in notices[0]
    names = [line.split("\t")[0] for line in (sounds / "2.tsv").read_text().splitlines()]
    audio = [read_sound(sounds / name) for name in names]
    lengths = np.array([len(samples) for samples in audio], "int32")
    padded = np.ones((len(audio), lengths.max() + 7), "float32")
    for row, samples in zip(padded, audio, strict=True):
        row[: len(samples)] = samples
    recognizer = keras_seq.Recognizer.load(run, n_best=2)
    expected = [[text.text for text in row] for row in recognizer.recognize(audio)]
    answer = Served(version)("n_best", samples=padded, lengths=lengths)
    assert [[text.decode() for text in row] for row in answer["text"]] == expected
    folder = export_onnx(Run.open(run), tmp_path / "onnx", verify=5, n_best=2)
    found = runtime.load(folder).run(audio)
    assert [[one.text for one in row] for row in found] == expected
    scores = [one.score for row in recognizer.recognize(audio) for one in row]
    np.testing.assert_allclose([one.score for row in found for one in row], scores, atol=1e-4)
    file = export_litert(Run.open(run), tmp_path / "a.tflite", verify=5, n_best=2, max_input=2)
    found = litert.load(file).run(audio)
    assert [[one.text for one in row] for row in found] == expected
    np.testing.assert_allclose([one.score for row in found for one in row], scores, atol=1e-4)
    loaded = LoadedModel(version, 1)
    content = base64.b64encode((sounds / names[0]).read_bytes()).decode()
    request = {"instances": [{"audio": {"b64": content}}]}
    inputs = read_audio(request, loaded.sample_rate, Limits()).decode()
    heard = loaded.run("serving_default", inputs)["text"][0].decode()
    assert (loaded.sample_rate, heard) == (RATE, expected[0][0])
    with pytest.raises(InputError, match="has no ensembles and reads no ids"):
        export_saved_model(Run.open(run), tmp_path / "served", ids_only=True)


def assert_resume_changes_nothing(folder, options):
    """Compares the weights of two updates in one training and in two."""
    options = {"training__validate_every": 1, "training__checkpoint_every": 1, **options}
    train(folder / "sounds", folder / "whole", training__max_steps=2, **options)
    parts = killed_after(1, folder / "whole", folder / "parts")
    train(folder / "sounds", parts, training__max_steps=2, **options)
    assert_equal_tensors(tensors_of(parts, 2), tensors_of(folder / "whole", 2))


@pytest.mark.slow
@pytest.mark.weekly
def test_resumed_training_ends_with_the_same_weights(tmp_path):
    """With masks of SpecAugment and dropout, whose seeds are part of the state."""
    options = {"model__dropout": 0.3, "data__concatenation": 0.5}
    assert_resume_changes_nothing(tmp_path, options)


ATTENTIVE = {
    "preset": "speech-attention",
    "model__num_mels": 8,
    "model__num_encoder_layers": 2,
    "model__embedding_units": 8,
    "model__encoder_units": 8,
    "model__decoder_units": 16,
    "model__attention_units": 8,
    "search__max_length": 6,
    "search__beam_size": 2,
}


@pytest.mark.slow
@pytest.mark.weekly
def test_resumed_training_with_attention_and_ctc_ends_with_the_same_weights(tmp_path):
    assert_resume_changes_nothing(tmp_path, {**ATTENTIVE, "model__ctc_weight": 0.4})


@pytest.mark.slow
@pytest.mark.weekly
def test_recognizer_with_attention_and_ctc_is_exported(tmp_path):
    options = {**ATTENTIVE, "model__ctc_weight": 0.4, "training__max_steps": 1}
    train(tmp_path / "sounds", tmp_path / "run", **options)
    recognizer = keras_seq.Recognizer.load(tmp_path / "run")
    assert recognizer([np.zeros(900)]) == [""]
    # Publishes only if the export gives the texts of the run.
    version = export_saved_model(Run.open(tmp_path / "run"), tmp_path / "served", verify=4)
    assert (version / "saved_model.pb").is_file()
    folder = export_onnx(Run.open(tmp_path / "run"), tmp_path / "onnx", verify=4)
    assert runtime.load(folder)([np.zeros(900)]) == [""]
    file = export_litert(Run.open(tmp_path / "run"), tmp_path / "a.tflite", verify=4, max_input=1)
    assert litert.load(file)([np.zeros(900)]) == [""]


def prepare(path, **overrides):
    """Prepares a run in a folder beside a file of recordings, and returns it with the notices."""
    values = {"data.pairs": str(path), **{k.replace("__", "."): v for k, v in overrides.items()}}
    settings = load_settings(preset="speech-ctc", overrides=values)
    notices = []
    run = keras_seq.preparation.prepare_run(settings, path.parent / "run", notice=notices.append)
    run.unlock()
    return run, notices


def test_long_and_silent_recordings_are_dropped_and_joined_ones_have_a_space(tmp_path):
    path = write_sounds(tmp_path, 30, 1)
    write_wave(tmp_path / "empty.wav", np.zeros((0, 1)))
    write_wave(tmp_path / "long.wav", np.ones((14_000, 1)))
    with path.open("a") as file:
        file.write("empty.wav\tlow\nlong.wav\thigh\n")
    options = {"data__max_seconds": 1.5, "data__concatenation": 1.0}
    run, notices = prepare(path, tokenizer__kind="char", **options)
    assert any("2 without text, silent or longer than 1.5 seconds" in line for line in notices)
    corpus = keras_seq.data.TokenCorpus.open(run.train_directory)
    texts = run.target_tokenizer.decode([corpus.target(i).tolist() for i in range(len(corpus))])
    assert {word for text in texts for word in text.split(" ")} == {"low", "high"}
    assert max(len(text.split(" ")) for text in texts) > 3


def test_recordings_that_cannot_be_read_are_named(tmp_path):
    path = tmp_path / "sounds.tsv"
    path.write_text("missing.wav\tlow\n" * 20)
    with pytest.raises(InputError, match=r"missing.wav: no such file or directory"):
        prepare(path)
    write_wave(tmp_path / "empty.wav", np.zeros((0, 1)))
    path.write_text("empty.wav\tlow\n" * 20)
    with pytest.raises(InputError, match="no recording has samples"):
        prepare(path)


def test_data_names_the_file_of_the_task(tmp_path, keras_seq_command):
    path = write_sounds(tmp_path, 20, 1)
    options = ["--task", "speech", "--data", path, "--dry-run", "--set", "model.units=4"]
    outcome = keras_seq_command("train", tmp_path / "run", *options)
    assert outcome.code == 0, outcome.err
    assert "settings in proportion to 20 recordings" in outcome.err
    assert any(line.startswith("first batch") and "seconds" in line for line in outcome.lines)
    outcome = keras_seq_command("train", tmp_path / "run", *options, "--pairs", path)
    assert outcome.code == 2 and "not with --pairs" in outcome.err
    (tmp_path / "labeled.tsv").write_text(
        "".join(f"good {i}\tyes\nbad {i}\tno\n" for i in range(20))
    )
    outcome = keras_seq_command(
        "train",
        tmp_path / "b",
        "--task",
        "classify",
        "--data",
        tmp_path / "labeled.tsv",
        "--dry-run",
    )
    assert outcome.code == 0 and f'labeled = "{tmp_path}/labeled.tsv"' in outcome.out.decode()
