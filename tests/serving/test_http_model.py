"""`LoadedModel` answers like `tf.saved_model.load`; invalid versions raise errors."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
from http_serving import save_text_model

from keras_seq.serving.http.errors import RequestError
from keras_seq.serving.http.model import LoadedModel, ModelError

TEXTS = np.array([b"A dog runs.", b"", b"\xff\x00", "é".encode() * 30], object)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return save_text_model(tmp_path_factory.mktemp("base"), 1, "> ")


@pytest.fixture(scope="module")
def model(path):
    return LoadedModel(path, 1, threads=2, trust=True)


def test_loaded_signatures_equal_the_saved_ones(model):
    assert set(model.signatures) == {"serving_default", "n_best", "ids", "slow", "bytes"}
    signature = model.signatures["serving_default"]
    assert set(signature.inputs) == {"text"}
    assert signature.inputs["text"][:2] == ("DT_STRING", (None,))
    assert signature.outputs["score"][:2] == ("DT_FLOAT", (None,))
    assert set(model.signatures["ids"].inputs) == {"ids"}
    assert model.signatures["ids"].inputs["ids"][:2] == ("DT_INT32", (None, None))


def test_answers_equal_those_of_tf_saved_model_load(model, path):
    other = tf.saved_model.load(str(path))
    for name in ("serving_default", "n_best", "bytes"):
        expected = other.signatures[name](text=tf.constant(TEXTS))
        found = model.run(name, {"text": TEXTS})
        assert set(found) == set(expected) == set(model.signatures[name].outputs)
        for key, values in expected.items():
            np.testing.assert_array_equal(found[key], values.numpy())
    ids = np.array([[1, 2], [3, 4]], np.int32)
    found = model.run("ids", {"ids": ids})
    assert found["ids"].tolist() == [[[1, 2, 1, 2]], [[3, 4, 3, 4]]]


def test_loaded_model_answers_many_threads_correctly(model):
    def run(number):
        text = np.array([f"text {number}".encode()], object)
        return model.run("serving_default", {"text": text})["translation"].tolist()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(run, range(200)))
    assert found == [[f"> TEXT {number}".encode()] for number in range(200)]


def test_graph_error_on_bad_input_raises_request_error(model):
    with pytest.raises(RequestError, match="the model rejects this input") as caught:
        model.run("ids", {"ids": np.array([[100]], np.int32)})
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400
    assert model.run("ids", {"ids": np.array([[99]], np.int32)})["length"].tolist() == [[2]]


def test_a_retired_model_is_freed_with_its_last_request(path):
    model = LoadedModel(path, 1, trust=True)
    model.hold()
    model.hold()
    model.retire()
    assert model.run("serving_default", {"text": TEXTS})["score"].shape == (4,)
    model.release()
    assert not model.closed
    model.release()
    assert model.closed
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None


def save(path, function, name="serving_default"):
    module = tf.Module()
    module.function = function
    tf.saved_model.save(module, str(path), signatures={name: function})
    return path


def test_unservable_versions_raise_model_error(tmp_path, path):
    text = [tf.TensorSpec([None], tf.string, name="text")]
    numbers = [tf.TensorSpec([None], tf.float32, name="x")]
    pair = [*text, tf.TensorSpec([None], tf.string, name="more")]
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "saved_model.pb").write_bytes(b"")
    garbage = tmp_path / "garbage"
    garbage.mkdir()
    (garbage / "saved_model.pb").write_bytes(b"\xff\xfe no graph")
    # An incomplete copy: the graph without its variables.
    half = tmp_path / "half"
    (half / "variables").mkdir(parents=True)
    (half / "saved_model.pb").write_bytes((path / "saved_model.pb").read_bytes())
    failing = tf.function(
        lambda text: {"y": tf.gather(text, [7])}, input_signature=text, autograph=False
    )
    cases = [
        (tmp_path / "absent", "not a SavedModel that can be served"),
        (empty, "not a SavedModel that can be served"),
        (garbage, "not a SavedModel that can be served"),
        (half, "not a SavedModel that can be served"),
        (
            save(tmp_path / "named", tf.function(lambda text: {"y": text}, text), "translate"),
            "no signature serving_default; its signatures: translate",
        ),
        (
            save(tmp_path / "numbers", tf.function(lambda x: {"y": x}, numbers)),
            r"serving_default must take one input, text of shape \[\?\]",
        ),
        (
            save(tmp_path / "pair", tf.function(lambda text, more: {"y": text}, pair)),
            r"serving_default must take one input, text of shape \[\?\]",
        ),
        (
            save(tmp_path / "type", tf.function(lambda text: {"y": tf.complex(1.0, 1.0)}, text)),
            "DT_COMPLEX64, which has no JSON form",
        ),
        (save(tmp_path / "fails", failing), "the model rejects this input"),
    ]
    for broken, words in cases:
        with pytest.raises(ModelError, match=words) as caught:
            LoadedModel(broken, 1, trust=True)
        assert "\n" not in str(caught.value)
