"""Training in Python equals the command, and what it returns can be used, saved and exported."""

import json

import datasets
import keras
import numpy as np
import pytest
from label_runs import labeled_lines, tagged_lines
from sound_files import PITCHES, RATE

import keras_seq
from keras_seq.estimators import estimator
from keras_seq.serving import SavedModelTranslator
from keras_seq.text.dates import date_pairs

pytestmark = pytest.mark.slow

PAIRS = date_pairs(200)
SMALL = {
    "tokenizer.size": 300,
    "model.members": 1,
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "model.units": 16,
    "model.feedforward_units": 16,
    "model.num_heads": 2,
    "training.batch_tokens": 512,
    "training.max_steps": 4,
    "training.validate_every": 2,
    "training.checkpoint_every": 2,
    "search.beam_size": 2,
    "search.max_length": 12,
}


class Recorder(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.batches, self.validations = 0, []

    def on_train_batch_end(self, batch, logs=None):
        self.batches += 1

    def on_test_end(self, logs=None):
        self.validations.append(logs)


def weights_of(run, step=4):
    path = run / "checkpoints" / f"step-{step:08}" / "weights.safetensors"
    return path.read_bytes()


@pytest.fixture(scope="module", autouse=True)
def _unchanged_threads():
    """Keeps the threads of this process, which other tests use; tests/process has the test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimator, "share_training_cores", lambda: None)
        yield


@pytest.fixture(scope="module")
def recorder():
    return Recorder()


@pytest.fixture(scope="module")
def messages():
    return []


@pytest.fixture(scope="module")
def translator(recorder, messages):
    return keras_seq.Translator.fit(
        PAIRS,
        valid=PAIRS[:20],
        preset="transformer-tiny",
        settings=SMALL,
        callbacks=[recorder],
        notice=messages.append,
    )


def test_messages_do_not_name_temporary_files(translator, messages):
    assert any("parameters" in line for line in messages)
    assert not [line for line in messages if "/tmp" in line or "CSV" in line]
    with pytest.raises(keras_seq.InputError, match="^examples.csv: no pair has text on both sides"):
        keras_seq.Translator.fit([("", "")], notice=messages.append)


def test_weights_equal_those_of_the_command(translator, tmp_path, keras_seq_command):
    for name, pairs in (("train.tsv", PAIRS), ("valid.tsv", PAIRS[:20])):
        text = "".join(f"{source}\t{target}\n" for source, target in pairs)
        (tmp_path / name).write_text(text)
    files = ["--pairs", tmp_path / "train.tsv", "--valid-pairs", tmp_path / "valid.tsv"]
    options = [f"--set={key}={value}" for key, value in SMALL.items()]
    run = tmp_path / "run"
    outcome = keras_seq_command("train", run, *files, "--preset", "transformer-tiny", *options)
    assert outcome.code == 0, outcome.err
    assert weights_of(translator.run.path) == weights_of(run)


def test_callbacks_see_each_update_and_validation(translator, recorder):
    assert recorder.batches == 4
    assert len(recorder.validations) == 2
    losses = [values["loss"] for values in recorder.validations]
    assert losses == pytest.approx(translator.history.validation["loss"], rel=1e-4)


def test_result_and_history_have_the_course_of_the_training(translator):
    assert translator.result.steps == 4
    history = translator.history
    assert history.validation["step"] == [2, 4]
    assert history.best_step in (2, 4)
    assert history.monitor == translator.result.metric
    lines, metric = translator.plot_history().axes
    assert list(lines.lines[-1].get_ydata()) == history.validation["loss"]
    assert list(metric.lines[0].get_ydata()) == history.validation[history.monitor]


@pytest.mark.weekly
def test_evaluation_equals_that_of_the_run(translator):
    sources, references = zip(*PAIRS[20:40], strict=True)
    found = translator.evaluate(PAIRS[20:40], metrics=["chrf", "exact"])
    expected = keras_seq.evaluate(translator.run.path, sources, references)
    for name in ("chrf", "exact"):
        assert found.metrics[name] == expected.metrics[name]
    assert list(found.outputs) == translator(list(sources))


@pytest.mark.weekly
def test_saved_model_is_loaded_and_exported(translator, tmp_path):
    """The temporary run is deleted after it is saved."""
    lines = [source for source, _ in PAIRS[:5]]
    temporary = translator.run.path
    assert temporary.exists()
    translator.save(tmp_path / "run")
    assert translator.run.path == tmp_path / "run"
    assert not temporary.exists()
    assert keras_seq.Translator.load(tmp_path / "run")(lines) == translator(lines)
    translator.export(tmp_path / "served", verify=0)
    assert SavedModelTranslator(tmp_path / "served" / "1")(lines) == translator(lines)
    with pytest.raises(keras_seq.InputError, match="run"):
        translator.save(tmp_path / "run")


def data_of(page):
    """The data in a page's script."""
    start = page.index("const data = ") + len("const data = ")
    return json.JSONDecoder().raw_decode(page[start:])[0]


def test_attention_and_beam_are_pages_of_a_notebook(translator, tmp_path):
    lines = [PAIRS[0][0], " ", PAIRS[1][0]]
    texts = translator(lines)
    page = translator.show_attention(lines)
    shown = data_of(page)["lines"]
    assert [(line["number"], line["text"]) for line in shown] == [(1, texts[0]), (3, texts[2])]
    sums = np.array(shown[0]["weights"]).reshape(-1, len(shown[0]["source_tokens"])).sum(1)
    np.testing.assert_allclose(sums, 1000, atol=len(shown[0]["source_tokens"]))
    beam = data_of(translator.show_beam(lines))["lines"]
    assert [line["results"][0]["text"] for line in beam] == [texts[0], texts[2]]
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    with pytest.raises(ValueError, match="no line has a translation"):
        translator.show_attention([" "])


def test_validation_with_other_columns_is_refused(tmp_path):
    features = [(source, target, "V") for source, target in PAIRS]
    with pytest.raises(keras_seq.InputError, match="`examples` and `valid` have different columns"):
        keras_seq.Translator.fit(features, valid=PAIRS, notice=[].append)
    (tmp_path / "pairs.tsv").write_text("source\ttarget\na\tb\n")
    with pytest.raises(keras_seq.InputError, match=r"\(a file; source=1,target=2\): give both"):
        keras_seq.Translator.fit(tmp_path / "pairs.tsv", valid=PAIRS, notice=[].append)


@pytest.mark.weekly
def test_interrupted_training_is_resumed_by_the_same_call(translator, tmp_path):
    options = {"valid": PAIRS[:20], "preset": "transformer-tiny", "directory": tmp_path / "run"}
    notices = []
    for steps in (2, 4):
        keras_seq.Translator.fit(
            PAIRS, settings=SMALL | {"training.max_steps": steps}, notice=notices.append, **options
        )
    assert "resuming after step 2" in notices
    assert weights_of(tmp_path / "run") == weights_of(translator.run.path)
    with pytest.raises(keras_seq.InputError, match="this run was started with different settings"):
        keras_seq.Translator.fit(PAIRS[1:], settings=SMALL, notice=notices.append, **options)


LABELED = {"training.max_epochs": 2, "training.sample_count": 0}


def test_classifier_fits_a_data_set():
    lines = labeled_lines(200, 1)
    features = datasets.Features(
        text=datasets.Value("string"), label=datasets.ClassLabel(names=["wet", "cold", "dry"])
    )
    columns = {"text": [text for text, _ in lines], "label": [label for _, label in lines]}
    examples = datasets.Dataset.from_dict(columns, features=features)
    assert set(examples["label"]) == {0, 1, 2}
    classifier = keras_seq.Classifier.fit(
        examples, preset="classify-bag", settings=LABELED, notice=[].append
    )
    evaluation = classifier.evaluate(examples, confidence=False)
    outputs = classifier(columns["text"])
    accuracy = np.mean([a == b for a, b in zip(outputs, columns["label"], strict=True)])
    assert evaluation.metrics["accuracy"].value == pytest.approx(accuracy, abs=1e-9)


@pytest.mark.weekly
def test_tagger_fits_lists_of_words():
    rows = [(text.split(), tags.split()) for text, tags in tagged_lines(150, 1)]
    settings = LABELED | {"model.units": 8, "model.embedding_units": 8}
    tagger = keras_seq.Tagger.fit(rows, preset="tag-birnn", settings=settings, notice=[].append)
    assert len(tagger([" ".join(rows[0][0])])[0].split()) == len(rows[0][1])


@pytest.mark.weekly
def test_generator_fits_texts():
    texts = (f"{source} is {target}" for source, target in PAIRS)
    settings = LABELED | {"model.units": 16, "model.num_layers": 1, "search.max_length": 5}
    generator = keras_seq.Generator.fit(
        texts, preset="lm-lstm", settings=settings, notice=[].append
    )
    evaluation = generator.evaluate([source for source, _ in PAIRS[:9]], confidence=False)
    assert evaluation.metrics["perplexity"].value > 1


@pytest.mark.weekly
def test_recognizer_fits_arrays():
    pytest.importorskip("soundfile")
    pytest.importorskip("soxr")
    times = np.arange(1200) / RATE
    sounds = {name: np.sin(2 * np.pi * pitch * times) for name, pitch in PITCHES.items()}
    rows = [((samples, RATE), name) for name, samples in sounds.items()] * 20
    settings = LABELED | {"model.units": 16, "model.num_layers": 1}
    recognizer = keras_seq.Recognizer.fit(rows, settings=settings, notice=[].append)
    outputs = recognizer([samples for (samples, _), _ in rows])
    evaluation = recognizer.evaluate(rows, metrics=["exact"], confidence=False)
    right = np.mean([output == name for output, (_, name) in zip(outputs, rows, strict=True)])
    assert evaluation.metrics["exact"].value == pytest.approx(100 * right, abs=1e-6)
