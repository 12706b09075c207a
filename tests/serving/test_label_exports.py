"""The SavedModels of a classifier and of a tagger return the outputs of the run."""

import shutil

import numpy as np
import pytest
from label_runs import label_settings, labeled_lines, tagged_lines
from serving.test_saved_model import Served

import keras_seq
from keras_seq import litert, runtime
from keras_seq.run import Run
from keras_seq.serving import export_litert, export_onnx, export_saved_model
from keras_seq.settings import load_settings
from keras_seq.text import EOS_ID, word_tokens

pytestmark = pytest.mark.slow

AWKWARD = [
    "",
    "  ",
    "\t sun \n rain\r",
    "sun\u00a0and rain",
    "a \u200b b",
    "\u200b",
    "😀 snow 👩\u200d👩\u200d👧",
    "\u2028 e\u0301 \u00e9 ﬁ",
    "x" * 5000,
    "new york " * 10,
]


def exported(path, base, **options):
    notices = []
    version = export_saved_model(
        Run.open(path), base, verify=options.pop("verify", 5), notice=notices.append, **options
    )
    return Served(version), notices


@pytest.fixture(scope="module")
def classifier(classifier_run, tmp_path_factory):
    served, notices = exported(classifier_run, tmp_path_factory.mktemp("classifier"))
    assert notices[0].startswith("5 lines of the validation text come out as the run")
    return keras_seq.Classifier.load(classifier_run), served


@pytest.fixture(scope="module")
def tagger(tagger_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tagger")
    run = Run.open(shutil.copytree(tagger_run, folder / "run"))
    # So large that texts without names get names too.
    for step in run.checkpoints.steps:
        run.logs.append_metrics({"kind": "validation", "step": step, "outside_penalty": 15.0})
    served, notices = exported(run.path, folder / "served")
    assert notices[0].startswith("5 lines of the validation text come out as the run")
    loaded = keras_seq.Tagger.load(run.path)
    loaded.path = run.path
    return loaded, served


def test_exported_classifier_labels_equal_those_of_the_run(classifier):
    loaded, served = classifier
    texts = [text for text, _ in labeled_lines(10, 8)] + AWKWARD
    expected = loaded.classify(texts)
    answer = served.text(texts)
    assert [label.decode() for label in answer["label"]] == [one.label for one in expected]
    np.testing.assert_allclose(
        answer["probability"], [one.probability for one in expected], atol=1e-5
    )
    assert answer["truncated"].tolist() == [one.truncated for one in expected]
    assert any(one.truncated for one in expected)


@pytest.mark.weekly
def test_classifier_of_words_and_their_characters_is_exported(tmp_path):
    overrides = {"model.character_filters": 3, "model.filters": 4, "training.max_steps": 10}
    settings = label_settings(tmp_path, "classify")
    files = {f"data.{name}": getattr(settings.data, name) for name in ("labeled", "valid_labeled")}
    settings = load_settings(preset="classify-cnn", overrides=files | overrides)
    keras_seq.train(settings, tmp_path / "run", notice=[].append)
    served, _ = exported(tmp_path / "run", tmp_path / "served")
    loaded = keras_seq.Classifier.load(tmp_path / "run")
    texts = [text for text, _ in labeled_lines(10, 8)] + AWKWARD + ["Rain snowy"]
    expected = loaded.classify(texts)
    answer = served.text(texts)
    np.testing.assert_allclose(
        answer["probability"], [one.probability for one in expected], atol=1e-5
    )
    assert answer["truncated"].tolist() == [one.truncated for one in expected]
    run = Run.open(tmp_path / "run")
    for model in (
        runtime.load(export_onnx(run, tmp_path / "onnx")),
        litert.load(export_litert(run, tmp_path / "model.tflite")),
    ):
        found = model.run(texts)
        assert [row[0][::2] for row in found] == [(one.label, one.truncated) for one in expected]
    rows = word_tokens(Run.open(tmp_path / "run").source_tokenizer, texts[:10], whole_words=True)
    width = max(len(row.ids) for row in rows)
    ids, characters = np.zeros((10, width), "int32"), np.zeros((10, width, 16), "int32")
    for number, row in enumerate(rows):
        ids[number, : len(row.ids)] = row.ids
        characters[number, : len(row.ids)] = np.reshape(row.characters(), (-1, 16))
    answer = served("ids", ids=ids, characters=characters)
    np.testing.assert_allclose(
        answer["probability"], [one.probability for one in expected[:10]], atol=1e-5
    )


@pytest.mark.weekly
def test_labels_of_other_exports_equal_those_of_the_run(classifier, classifier_run, tmp_path):
    folder = export_onnx(Run.open(classifier_run), tmp_path / "onnx", verify=5)
    file = export_litert(Run.open(classifier_run), tmp_path / "model.tflite", verify=5)
    texts = [text for text, _ in labeled_lines(10, 8)] + AWKWARD
    expected = classifier[0].classify(texts)
    for model in (runtime.load(folder, batch_size=4), litert.load(file)):
        for row, one in zip(model.run(texts), expected, strict=True):
            assert [output.text for output in row] == [label for label, _ in one.ranked]
            assert [output.score for output in row] == pytest.approx(
                [probability for _, probability in one.ranked], abs=1e-5
            )
            assert row[0].truncated == one.truncated


@pytest.mark.weekly
def test_tags_of_other_exports_equal_those_of_the_run(tagger, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(tagger[0].path, run)
    folder = export_onnx(Run.open(run), tmp_path / "onnx", verify=5)
    texts = [text for text, _ in tagged_lines(10, 8)] + AWKWARD
    file = export_litert(Run.open(run), tmp_path / "model.tflite", verify=5)
    expected = tagger[0](texts)
    assert runtime.load(folder)(texts) == expected
    assert litert.load(file)(texts) == expected


def test_ranked_signature_lists_all_labels_by_probability(classifier):
    loaded, served = classifier
    texts = ["rain", "", "snow sun"]
    answer = served.text(texts, "ranked")
    np.testing.assert_allclose(answer["probability"].sum(axis=1), 1, rtol=1e-5)
    for row, one in enumerate(loaded.classify(texts)):
        found = [label.decode() for label in answer["label"][row]]
        assert found == [label for label, _ in one.ranked]
        assert (np.diff(answer["probability"][row]) <= 0).all()


def test_ids_get_the_same_labels_as_their_text(classifier):
    loaded, served = classifier
    texts = ["rain and sun", "snow"]
    rows = loaded._tokenizer.encode(texts)
    ids = np.zeros((2, 1 + max(map(len, rows))), "int32")
    for row, one in zip(ids, rows, strict=True):
        row[: len(one)] = one
        # The model accepts rows with and without an end token.
        row[len(one)] = EOS_ID if row is ids[0] else 0
    answer, expected = served("ids", ids=ids), served.text(texts)
    assert answer["label"].tolist() == expected["label"].tolist()
    np.testing.assert_allclose(answer["probability"], expected["probability"], atol=1e-6)


@pytest.mark.weekly
def test_exported_tagger_tags_equal_those_of_the_run(tagger, tagger_run):
    loaded, served = tagger
    texts = [text for text, _ in tagged_lines(10, 8)] + AWKWARD
    answer = served.text(texts)
    found = [tags.decode() for tags in answer["tags"]]
    assert loaded(texts) != keras_seq.Tagger.load(tagger_run)(texts)
    for text, tags, cut, one in zip(
        texts, found, answer["truncated"], loaded.tag(texts), strict=True
    ):
        if cut:
            # The export does not tag text beyond its limit; the run tags a long text in pieces.
            assert len(text) >= 100 and len(tags.split()) <= len(one.tags)
        else:
            assert tags.split() == list(one.tags)
    # The server reads 50 characters for each token of the maximum length.
    limit = Run.open(tagger_run).settings.data.max_source_length
    assert answer["truncated"].tolist() == [
        len(text) > 50 * limit or len(text.split()) > limit for text in texts
    ]


def test_tags_of_ids_are_at_the_first_token_of_each_word(tagger):
    loaded, served = tagger
    text = "ada king lives in new york"
    (tokens,) = word_tokens(loaded._tokenizer, [text], whole_words=True)
    begins = np.zeros((1, len(tokens.ids)), bool)
    begins[0, tokens.begins] = True
    characters = np.reshape(tokens.characters(), (1, -1, 16)).astype("int32")
    ids = np.array([tokens.ids], "int32")
    answer = served("ids", ids=ids, begins=begins, characters=characters)["tags"]
    assert [tag.decode() for tag in answer[begins]] == loaded([text])[0].split()
    assert (answer[~begins] == b"").all()


@pytest.mark.parametrize("kind", ["classifier", "tagger"])
def test_exported_classifier_and_tagger_accept_an_empty_batch(kind, request):
    served = request.getfixturevalue(kind)[1]
    for name, values in served.text([]).items():
        assert len(values) == 0, name


@pytest.mark.weekly
@pytest.mark.parametrize("kind", ["classifier", "tagger"])
def test_export_without_text_has_no_tokenizer_operations(kind, request, tmp_path):
    run = request.getfixturevalue(f"{kind}_run")
    served, _ = exported(run, tmp_path, ids_only=True, verify=0)
    assert set(served.signatures) - {"__saved_model_init_op"} == {"serving_default", "ids"}
    operations = {op.type for op in served.session.graph.get_operations()}
    assert not {name for name in operations if "entencepiece" in name or name.startswith("Xla")}
