"""An endless loop in the graph of someone else ends with an error, not with a hanging command."""

import time

import numpy as np
import pytest
from foreign_model import change_graph, save_foreign

from keras_seq.serving import SavedModelTranslator
from keras_seq.serving.graph_file import time_limit
from keras_seq.serving.http.errors import RequestError
from keras_seq.serving.http.model import LoadedModel, ModelError
from keras_seq.text import InputError

WORDS = "did not end within 1 s: a graph may contain an endless loop"


def endless(text):
    """Returns the texts after a loop that ends only if one of them is empty."""
    import tensorflow as tf

    shortest = tf.reduce_min(tf.strings.length(text))
    (shortest,) = tf.while_loop(lambda n: n > 0, lambda n: [tf.minimum(n + 1, 9)], [shortest])
    return tf.strings.join([text, tf.fill(tf.shape(text), tf.strings.as_string(shortest))])


def keep_the_loop_in_one_operation(meta_graph):
    """Without this attribute, TensorFlow does not split a loop into its operations."""
    [loop] = [node for node in meta_graph.graph_def.node if node.op == "StatelessWhile"]
    loop.attr.pop("_lower_using_switch_merge")


@pytest.fixture
def one_second(monkeypatch):
    monkeypatch.setattr(time_limit, "_SECONDS", 1)
    monkeypatch.setattr(time_limit, "_SECONDS_PER_ROW", 0)


@pytest.mark.parametrize("in_one", [False, True])
def test_translation_with_an_endless_loop_ends_with_an_error(tmp_path, one_second, in_one):
    version = save_foreign(tmp_path / "1", endless)
    if in_one:
        change_graph(version, keep_the_loop_in_one_operation)
    translator = SavedModelTranslator(version).load()
    started = time.monotonic()
    with pytest.raises(InputError, match=f"{version}: {WORDS}; use --trust if you know who"):
        translator(["a dog"])
    assert time.monotonic() - started < 10


def test_endless_loop_while_loading_ends_with_an_error(tmp_path, one_second):
    version = save_foreign(
        tmp_path / "1", lambda text: text, at_start=lambda: endless(["a dog"]).op
    )
    with pytest.raises(InputError, match=WORDS):
        SavedModelTranslator(version).load()
    with pytest.raises(ModelError, match=f"^{WORDS}$"):
        LoadedModel(version, 1)


def test_request_for_an_endless_loop_ends_with_an_error_and_others_are_answered(
    tmp_path, one_second
):
    model = LoadedModel(save_foreign(tmp_path / "1", endless), 1)
    with pytest.raises(RequestError, match=f"the model {WORDS}") as caught:
        model.run("serving_default", {"text": np.array([b"a dog"], object)})
    assert caught.value.code == 504
    answer = model.run("serving_default", {"text": np.array([b""], object)})
    assert answer["translation"].tolist() == [b"0"]


def test_server_skips_a_version_whose_warm_up_never_ends(tmp_path, one_second):
    def from_empty(text):
        import tensorflow as tf

        return endless(tf.strings.join([text, "!"]))

    with pytest.raises(ModelError, match=WORDS):
        LoadedModel(save_foreign(tmp_path / "1", from_empty), 1)


def test_time_limit_grows_with_the_rows_and_is_generous():
    assert time_limit.seconds_for(0) == 600
    assert time_limit.seconds_for(32) == 920


def test_trusted_model_has_no_time_limit(tmp_path, monkeypatch):
    def fail(rows):
        raise AssertionError("a time limit")

    monkeypatch.setattr(time_limit, "seconds_for", fail)
    version = save_foreign(tmp_path / "1", lambda text: text)
    assert SavedModelTranslator(version, trust=True)(["a"]) == ["a"]
    LoadedModel(version, 1, trust=True)
    with pytest.raises(AssertionError, match="a time limit"):
        SavedModelTranslator(version)(["a"])
