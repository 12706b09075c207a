"""Models of plugins that cannot be trained or searched, and the names of their weights."""

from typing import Literal

import keras
import pytest

import keras_seq
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
