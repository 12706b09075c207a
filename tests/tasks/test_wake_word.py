"""The task `wake-word`: from files of spans to a run, detections, scores and an export."""

import base64
import json
import re

import numpy as np
import pytest
from serving.test_saved_model import Served
from sound_files import RATE, write_streams, write_wave
from training.toy import assert_equal_tensors, killed_after, tensors_of

import keras_seq
from keras_seq import litert, runtime
from keras_seq.data import TokenCorpus, read_sound, sample_ids
from keras_seq.inference.wake_words import words_of_vocabulary
from keras_seq.run import Run
from keras_seq.run.averaging import average_run
from keras_seq.serving import export_litert, export_onnx, export_saved_model
from keras_seq.serving.http.limits import Limits
from keras_seq.serving.http.model import LoadedModel
from keras_seq.serving.http.sounds import read_audio
from keras_seq.settings import load_settings
from keras_seq.text import FIRST_WORD, UNK_ID, InputError

STEP = 160
SMALL = {
    "data.bucket_width": 4000,
    "data.concatenation": 0.5,
    "model.num_mels": 16,
    "model.frame_length": 0.02,
    "model.frame_step": STEP / RATE,
    "model.units": 16,
    "model.dropout": 0.0,
    "model.detection_seconds": 0.2,
    "training.batch_tokens": 60_000,
    "training.learning_rate": 0.02,
    "training.schedule": "constant",
    "training.ema": 0.9,
    "training.max_steps": 160,
    "training.validate_every": 80,
    "training.checkpoint_every": 80,
}


def train(folder, run, **overrides):
    values = {
        "data.pairs": str(write_streams(folder, 40, 1)),
        "data.valid_pairs": str(write_streams(folder, 12, 2)),
        **SMALL,
        **{key.replace("__", "."): value for key, value in overrides.items()},
    }
    settings = load_settings(preset="wake-word", overrides=values)
    keras_seq.train(settings, run)


@pytest.fixture(scope="module")
def wake_word_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wake")
    train(folder / "sounds", folder / "run")
    return folder / "run", folder / "sounds"


def ends_in(path):
    """Returns for each recording its path and the ends of its words."""
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    return [
        (path.parent / name, [float(end) for end in re.findall(r"-(\d+\.\d+)", spans)])
        for name, spans in rows
    ]


@pytest.mark.slow
@pytest.mark.weekly
def test_words_are_detected_when_they_end(wake_word_run, keras_seq_command):
    run, sounds = wake_word_run
    rows = ends_in(sounds / "2.tsv")
    outcome = keras_seq_command("detect", run, *(path for path, _ in rows), "--format", "jsonl")
    assert outcome.code == 0, outcome.err
    for line, (path, ends) in zip(outcome.lines, rows, strict=True):
        answer = json.loads(line)
        assert answer["path"] == str(path)
        found = answer["detections"]
        assert {one["word"] for one in found} <= {"high"}
        assert len(found) == len(ends)
        for one, end in zip(found, ends, strict=True):
            assert -0.1 <= one["seconds"] - end <= 0.2
    (path, ends) = next(row for row in rows if row[1])
    outcome = keras_seq_command("detect", run, "--threshold", 0.01, stdin=f"{path}\n".encode())
    first = outcome.lines[0].split("\t")
    assert first[0] == str(path) and first[2] == "high" and float(first[3]) >= 0.01
    outcome = keras_seq_command("evaluate", run, "--pairs", sounds / "2.tsv", "--json")
    values = json.loads(outcome.out)
    assert values["metrics"]["f1"]["value"] == 1
    assert values["metrics"]["false_alarms"]["value"] == 0
    assert values["baseline"]["metrics"]["f1"]["value"] < 0.9
    assert str(path) in keras_seq.report(run)


@pytest.mark.slow
def test_a_stream_in_pieces_has_the_detections_of_the_whole(wake_word_run):
    run, sounds = wake_word_run
    detector = keras_seq.WakeWordDetector.load(run)
    samples = np.concatenate([read_sound(path) for path, _ in ends_in(sounds / "2.tsv")])
    (whole,) = detector.detect([samples])
    assert len(whole) > 5
    stream, found = detector.stream(), []
    sizes = np.random.default_rng(0).integers(0, 5000, 200)
    for piece in np.split(samples, np.cumsum(sizes)[np.cumsum(sizes) < len(samples)]):
        found += stream.feed(piece)
    found += stream.feed(np.zeros(RATE))
    assert [(one.word, one.seconds) for one in found] == [(one.word, one.seconds) for one in whole]
    np.testing.assert_allclose(
        [one.probability for one in found], [one.probability for one in whole], atol=1e-5
    )
    (noisy,) = detector.detect([np.zeros(0)])
    assert noisy == []


@pytest.mark.weekly
@pytest.mark.slow
def test_export_gives_the_detections_of_the_run(wake_word_run, tmp_path):
    run, sounds = wake_word_run
    notices = []
    version = export_saved_model(
        Run.open(run), tmp_path / "served", verify=6, notice=notices.append
    )
    assert "6 recordings come out as in Python" in notices[0]
    audio = [read_sound(path) for path, _ in ends_in(sounds / "2.tsv")]
    lengths = np.array([len(samples) for samples in audio], "int32")
    # Whatever comes after the end of a recording is not heard.
    padded = np.ones((len(audio), lengths.max() + 7), "float32")
    for row, samples in zip(padded, audio, strict=True):
        row[: len(samples)] = samples
    detector = keras_seq.WakeWordDetector.load(run)
    served = Served(version)
    answer = served("serving_default", samples=padded, lengths=lengths)
    expected = [
        " ".join(f"{one.word}:{one.seconds:.2f}" for one in found) or "-"
        for found in detector.detect(audio)
    ]
    assert [text.decode() for text in answer["detections"]] == expected
    # Publishes only if six recordings have the detections of the run.
    exported = runtime.load(export_onnx(Run.open(run), tmp_path / "onnx", verify=6))
    assert exported(audio) == expected
    paths = [str(path) for path, _ in ends_in(sounds / "2.tsv")]
    assert exported([exported.read(path) for path in paths]) == expected
    file = export_litert(Run.open(run), tmp_path / "model.tflite", verify=6)
    assert litert.load(file)(audio) == expected
    highest = [rows.max() for rows in detector.probabilities(audio)]
    np.testing.assert_allclose(answer["probability"][:, 0], highest, atol=1e-5)
    empty = served("serving_default", samples=padded[:0], lengths=lengths[:0])
    assert empty["detections"].shape == (0,)
    loaded = LoadedModel(version, 1)
    content = base64.b64encode(ends_in(sounds / "2.tsv")[0][0].read_bytes()).decode()
    request = {"instances": [{"audio": {"b64": content}}]}
    inputs = read_audio(request, loaded.sample_rate, Limits()).decode()
    heard = loaded.run("serving_default", inputs)["detections"][0].decode()
    assert heard == expected[0]
    # The second half of a stream continues with the state after the first.
    whole = padded[:2, : 40 * STEP]
    states = {
        f"state_{name}": np.zeros((2, *value.shape[1:]), "float32")
        for name, value in detector.model.initial_state(1).items()
    }
    parts = []
    for half in np.split(whole, 2, axis=1):
        outputs = served("stream", samples=half, **states)
        parts.append(outputs.pop("probabilities"))
        states = outputs
    once = detector.model({"samples": whole, "lengths": np.full(2, whole.shape[1], "int32")})
    np.testing.assert_allclose(
        np.concatenate(parts, axis=1), 1 / (1 + np.exp(-np.asarray(once))), atol=1e-5
    )


@pytest.mark.slow
@pytest.mark.weekly
def test_resumed_training_ends_with_the_same_weights(tmp_path):
    """With random noise and dropout, whose seeds are part of the state."""
    options = {
        "model__dropout": 0.3,
        "training__validate_every": 1,
        "training__checkpoint_every": 1,
    }
    train(tmp_path / "sounds", tmp_path / "whole", training__max_steps=2, **options)
    parts = killed_after(1, tmp_path / "whole", tmp_path / "parts")
    train(tmp_path / "sounds", parts, training__max_steps=2, **options)
    assert_equal_tensors(tensors_of(parts, 2), tensors_of(tmp_path / "whole", 2))
    # The average of two checkpoints has the mean of their thresholds.
    average_run(parts, tmp_path / "mean", 2)
    entries = Run.open(parts).logs.entries("validation")
    thresholds = [entry["threshold"] for entry in entries]
    detector = keras_seq.WakeWordDetector.load(tmp_path / "mean")
    assert len(thresholds) == 2 and detector.threshold == pytest.approx(sum(thresholds) / 2)


def prepare(path, **overrides):
    values = {
        "data.pairs": str(path),
        "data.valid_pairs": str(path),
        **SMALL,
        **{key.replace("__", "."): value for key, value in overrides.items()},
    }
    settings = load_settings(preset="wake-word", overrides=values)
    run = keras_seq.preparation.prepare_run(settings, path.parent / "run")
    run.unlock()
    return run


def test_recordings_become_frames_with_the_words_that_end_in_them(tmp_path):
    samples = np.random.default_rng(1).uniform(-0.5, 0.5, 10 * STEP + 50)
    write_wave(tmp_path / "a.wav", np.round(samples * 2**15)[:, None])
    path = tmp_path / "spans.tsv"
    path.write_text("a.wav\tup:0.01-0.05 down:0.1-\na.wav\t-\n")
    # Longer recordings are cut into pieces of eight frames.
    run = prepare(path, data__concatenation=0.0, data__max_seconds=8 * STEP / RATE)
    assert sorted(words_of_vocabulary(run.target_tokenizer)) == ["down", "up"]
    corpus = TokenCorpus.open(run.train_directory)
    rows = [corpus.target(i).tolist() for i in range(len(corpus))]
    ids = {word: run.target_tokenizer.encode([word])[0][0] for word in ("up", "down")}
    assert sorted(ids.values()) == [FIRST_WORD, FIRST_WORD + 1]
    silent = [UNK_ID] * 8
    # 0.05 seconds are 400 samples: frame 2 of 160. The recording ends in frame 10.
    assert rows[:2] == [[*silent[:2], ids["up"], *silent[:5]], [UNK_ID, UNK_ID, ids["down"]]]
    assert rows[2:] == [silent, silent[:3]]
    read = np.concatenate([corpus.source(0), corpus.source(1)])
    expected = np.pad(read_sound(tmp_path / "a.wav"), (0, 110))
    np.testing.assert_array_equal(read, sample_ids(expected))


def test_wrong_spans_are_refused_with_the_recording(tmp_path):
    write_wave(tmp_path / "a.wav", np.ones((800, 1)))
    path = tmp_path / "spans.tsv"
    path.write_text("a.wav\tup:0.01-0.05\na.wav\tup:2-3\n")
    with pytest.raises(InputError, match=r"a.wav: lasts 0.10 seconds, but a span begins at 2"):
        prepare(path)
    path.write_text("a.wav\tup:0,01-0.05\n")
    with pytest.raises(InputError, match=r"received 'up:0,01-0.05', expected WORD:BEGIN-END"):
        prepare(path)
    valid = tmp_path / "valid.tsv"
    path.write_text("a.wav\tup\n")
    valid.write_text("a.wav\tdown\n")
    with pytest.raises(InputError, match="the word 'down' is in no training recording"):
        prepare(path, data__valid_pairs=str(valid))
    path.write_text("a.wav\t-\n")
    with pytest.raises(InputError, match="expected at least one span"):
        prepare(path)


@pytest.mark.slow
def test_validation_without_words_is_reported(tmp_path):
    write_wave(tmp_path / "a.wav", np.ones((3 * STEP, 1)))
    path, valid = tmp_path / "spans.tsv", tmp_path / "valid.tsv"
    path.write_text("a.wav\tup\na.wav\t-\n")
    valid.write_text("a.wav\t-\n")
    files = {"data.pairs": str(path), "data.valid_pairs": str(valid)}
    steps = dict.fromkeys(("max_steps", "validate_every", "checkpoint_every"), 1)
    overrides = {**SMALL, **files, **{f"training.{key}": value for key, value in steps.items()}}
    settings, notices = load_settings(preset="wake-word", overrides=overrides), []
    result = keras_seq.train(settings, tmp_path / "run", notice=notices.append)
    assert any("the validation recordings have no word" in line for line in notices)
    assert result.metric == "loss"
