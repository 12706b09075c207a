"""Models of plugins that cannot be trained or searched, and the names of their weights."""

from pathlib import Path
from typing import Literal

import keras
import numpy as np
import pytest

import keras_seq
from keras_seq.plugins import import_plugin
from keras_seq.run.models import build_model, named_weights
from keras_seq.run.weight_names import renumbered
from keras_seq.settings import ModelSection, a_family


def register(make):
    class Mine(ModelSection):
        model_class = make
        family: Literal["mine"] = a_family("mine")

    keras_seq.register_family("translate", "classify")(Mine)


def functional(*sizes, **_):
    source = keras.Input((None,), dtype="int32", name="source")
    vectors = keras.layers.Embedding(sizes[0], 4)(source)
    outputs = keras.layers.Dense(3)(keras.layers.Dense(4)(vectors))
    return keras.Model({"source": source}, outputs)


def test_names_of_weights_do_not_depend_on_earlier_models():
    register(staticmethod(functional))
    settings = keras_seq.load_settings(overrides=["task=classify", "model.family=mine"])
    first, second = (named_weights(build_model(settings, 9, 9)) for _ in range(2))
    assert [*first] == [*second]
    assert [*first][1:3] == ["dense/kernel", "dense/bias"]


def test_renumbered_names_are_unique():
    paths = ["conv_1/kernel", "conv_2/kernel", "conv_1_1/kernel", "a/conv_5", "a/conv_3"]
    names = renumbered(paths)
    assert len(set(names)) == len(paths)
    assert names[3:] == ["a/conv", "a/conv_1"]


def test_model_without_the_parts_of_the_search_is_refused():
    register(staticmethod(functional))
    settings = keras_seq.load_settings(overrides=["model.family=mine"])
    with pytest.raises(keras_seq.InputError, match="Functional lacks encoder, initial_state, dec"):
        build_model(settings, 9, 9)


def test_model_without_weights_is_refused():
    class Subclassed(keras.Model):
        def __init__(self, *sizes, **_):
            super().__init__()

    register(Subclassed)
    settings = keras_seq.load_settings(overrides=["task=classify", "model.family=mine"])
    with pytest.raises(keras_seq.InputError, match="Subclassed has no weights yet: expected a fun"):
        build_model(settings, 9, 9)


def test_warm_start_with_a_new_vocabulary_is_refused(tmp_path):
    register(staticmethod(functional))
    (tmp_path / "pairs.tsv").write_text("a\tb\n" * 40)
    settings = keras_seq.load_settings(
        overrides={
            "model.family": "mine",
            "data.pairs": str(tmp_path / "pairs.tsv"),
            "training.source_embeddings": "vectors.txt",
        }
    )
    with pytest.raises(keras_seq.InputError, match="training.source_embeddings: received 'vectors"):
        keras_seq.preparation.open_or_prepare(settings, tmp_path / "run")


@pytest.fixture
def plain_gru():
    """Settings of the model of `examples/plugins/plain_gru.py`."""
    import_plugin(str(Path(__file__).parents[2] / "examples" / "plugins" / "plain_gru.py"))
    return keras_seq.load_settings(overrides=["model.family=plain-gru", "model.units=4"])


def test_coverage_penalty_needs_a_family_with_attention(plain_gru):
    from keras_seq.search import generate
    from keras_seq.serving.model_graphs import search_graphs

    with pytest.raises(keras_seq.InputError, match="coverage_penalty: received 0.2, expected 0"):
        build_model(plain_gru.with_search({"coverage_penalty": 0.2}), 9, 8)
    model = build_model(plain_gru, 9, 8)
    message = "coverage_penalty: it needs attention to the source, but a PlainGRU has no"
    with pytest.raises(keras_seq.InputError, match=message):
        generate(model, [[4, 5, 3]], max_length=4, coverage_penalty=0.2)
    with pytest.raises(keras_seq.InputError, match=message):
        next(search_graphs(model, attention=True))


def test_example_family_searches_any_number_of_hypotheses_in_one_graph(plain_gru):
    """An ONNX export has one graph of the step for every beam size."""
    import tensorflow as tf

    from keras_seq.serving.model_graphs import search_graphs

    model = build_model(plain_gru, 9, 8)
    source = np.array([[4, 5, 3], [6, 3, 0]], np.int32)
    start, step = (
        tf.function(graph.function, autograph=False).get_concrete_function(
            **{name: tf.TensorSpec(*one, name) for name, one in graph.inputs.items()}
        )
        for _, graph in search_graphs(model)
    )
    for beam_size in (1, 3):
        # The state of a beam has K copies of the state that one call of the model computes.
        logits = model({"source": source, "target": np.full((2, 1), 2, np.int32)})
        parts = start(
            source=tf.constant(source), beam_size=tf.constant(beam_size), length=tf.constant(8)
        )
        tokens = np.full((2, beam_size), 2, np.int32)
        parents = np.tile(np.arange(beam_size, dtype=np.int32), (2, 1))
        numbers = {"position": tf.constant(0), "count": tf.constant(2)}
        found = step(token=tf.constant(tokens), parents=tf.constant(parents), **numbers, **parts)[
            "logits"
        ]
        np.testing.assert_allclose(found, np.repeat(logits, beam_size, axis=1), atol=1e-6)
