"""A version of someone else is checked before the server makes a session of it."""

import asyncio

import pytest
import tensorflow as tf
from foreign_model import change_graph, save_foreign

from keras_seq.serving.http.model import LoadedModel, ModelError
from keras_seq.serving.http.watcher import ModelWatcher


def exclaimed(text):
    return tf.strings.join([text, "!"])


def rename_default(signatures):
    signatures["other"].CopyFrom(signatures["serving_default"])
    del signatures["serving_default"]


def take_two_texts(signatures):
    signatures["serving_default"].inputs["more"].CopyFrom(
        signatures["serving_default"].inputs["text"]
    )


def take_a_number(signatures):
    signatures["serving_default"].inputs["text"].dtype = tf.float32.as_datatype_enum


def take_a_huge_row(signatures):
    signatures["n_best"].inputs["text"].tensor_shape.dim.add(size=1 << 40)


@pytest.fixture
def no_session(monkeypatch):
    def fail(*arguments, **options):
        raise AssertionError("a session was made")

    monkeypatch.setattr(tf.compat.v1, "Session", fail)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (rename_default, "no signature serving_default; its signatures: n_best, other"),
        (take_two_texts, "serving_default must take one input"),
        (take_a_number, "serving_default must take one input"),
        (take_a_huge_row, "input 'text' has the shape .*, expected at most 4,194,304 values"),
    ],
)
def test_signatures_are_checked_before_a_session_is_made(tmp_path, request, change, words):
    version = save_foreign(tmp_path / "1", exclaimed)
    change_graph(version, lambda meta_graph: change(meta_graph.signature_def))
    request.getfixturevalue("no_session")
    with pytest.raises(ModelError, match=words):
        LoadedModel(version, 1)


def test_version_that_appears_is_checked_before_a_session_is_made(tmp_path, request):
    notices = []
    watcher = ModelWatcher(tmp_path, notices.append)
    watcher.start(1, save_foreign(tmp_path / "1", exclaimed))
    version = save_foreign(tmp_path / "2", exclaimed)
    change_graph(version, lambda meta_graph: rename_default(meta_graph.signature_def))
    request.getfixturevalue("no_session")
    asyncio.run(watcher.check())
    assert watcher.current.version == 1
    assert notices == [
        "version 2 skipped: no signature serving_default; its signatures: n_best, other"
    ]
    watcher.close()


@pytest.mark.parametrize("kind", ["inputs", "outputs"])
def test_type_that_differs_from_the_signature_is_an_error(tmp_path, kind):
    version = save_foreign(tmp_path / "1", exclaimed)

    def claim(meta_graph):
        tensors = getattr(meta_graph.signature_def["n_best"], kind)
        tensors["text" if kind == "inputs" else "score"].dtype = tf.bool.as_datatype_enum

    change_graph(version, claim)
    with pytest.raises(ModelError, match="is DT_(STRING|FLOAT), expected DT_BOOL"):
        LoadedModel(version, 1)
