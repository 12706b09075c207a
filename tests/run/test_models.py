"""Models from settings, and weights from files."""

import keras
import numpy as np
import pytest

from keras_seq.models import RecurrentSeq2Seq, Transformer
from keras_seq.run import Run, models
from keras_seq.run.models import (
    build_model,
    build_run_model,
    load_model,
    named_weights,
    weight_arrays,
)
from keras_seq.settings import load_settings
from keras_seq.text import InputError

TINY = {
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 2,
    "model.units": 8,
    "model.feedforward_units": 12,
    "model.num_heads": 2,
    "model.norm": "post",
    "model.dropout": 0.25,
}


def test_build_model_follows_the_settings():
    model = build_model(load_settings(overrides=TINY), 20, 20)
    assert isinstance(model, Transformer)
    config = model.get_config()
    assert config["source_vocabulary_size"] == config["target_vocabulary_size"] == 20
    assert (config["num_encoder_layers"], config["num_decoder_layers"]) == (1, 2)
    assert (config["units"], config["feedforward_units"], config["num_heads"]) == (8, 12, 2)
    assert (config["norm"], config["dropout"]) == ("post", 0.25)
    assert config["share_embeddings"] is True


def test_two_vocabularies_have_two_tables():
    model = build_model(load_settings(overrides=TINY | {"tokenizer.joint": False}), 20, 30)
    shapes = [tuple(w.shape) for name, w in named_weights(model).items() if "embedding" in name]
    assert sorted(shapes) == [(20, 8), (30, 8)]


def test_build_model_builds_the_recurrent_family():
    settings = load_settings(
        overrides={
            "model.family": "rnn",
            "model.embedding_units": 4,
            "model.encoder_units": 4,
            "model.decoder_units": 8,
            "model.attention_units": 4,
        }
    )
    assert isinstance(build_model(settings, 20, 20), RecurrentSeq2Seq)


@pytest.mark.parametrize(
    ("cell", "layers", "rejected"), [("gru", 2, False), ("lstm", 2, True), ("lstm", 1, False)]
)
def test_deep_lstm_decoder_is_rejected_on_a_gpu_with_jax(monkeypatch, cell, layers, rejected):
    """The device is simulated, so no GPU is needed."""
    monkeypatch.setattr(models.backend, "name", lambda: "jax")
    monkeypatch.setattr(models.backend, "device", lambda: ("gpu", (9, 0)))
    overrides = {"model.family": "rnn", "model.cell": cell, "model.num_decoder_layers": layers}
    settings = load_settings(overrides=overrides)
    if rejected:
        with pytest.raises(InputError, match="LSTM decoder layers wrongly on a GPU"):
            build_model(settings, 20, 20)
    else:
        assert build_model(settings, 20, 20).count_params() > 0


def test_weight_names_do_not_depend_on_the_number_of_models():
    settings = load_settings(overrides=TINY)
    first, second = build_model(settings, 20, 20), build_model(settings, 20, 20)
    assert list(named_weights(first)) == list(named_weights(second))
    assert "decoder_block_1/cross_attention/query_kernel" in named_weights(first)


def test_duplicate_weight_names_raise_value_error():
    one, other = keras.layers.Dense(1, name="same"), keras.layers.Dense(1, name="same")
    inputs = keras.Input((2,))
    inner = keras.Model(inputs, other(inputs), name="inner")
    outer = keras.Input((2,))
    model = keras.Model(outer, one(outer) + inner(outer))
    assert [weight.path for weight in model.weights].count("same/kernel") == 2
    with pytest.raises(ValueError, match="Two weights of the model have one path"):
        named_weights(model)


def test_weight_arrays_are_copies():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="dense")])
    arrays = weight_arrays(model)
    (name,) = (name for name in arrays if name.endswith("dense/kernel"))
    before = arrays[name].copy()
    model.set_weights([np.full((2, 1), 7.0), np.zeros(1)])
    np.testing.assert_array_equal(arrays[name], before)


def test_load_model_restores_the_saved_weights(tiny_run):
    run = Run.open(tiny_run)
    fresh, loaded = build_run_model(run), load_model(run, "latest")
    assert list(weight_arrays(fresh)) == list(weight_arrays(loaded))
    stored = run.load_weights(
        {name: (tuple(w.shape), "float32") for name, w in named_weights(fresh).items()}, "latest"
    )
    for name, array in weight_arrays(loaded).items():
        np.testing.assert_array_equal(array, stored[name])


def test_load_model_rejects_the_weights_of_another_model(tiny_run):
    run = Run.open(tiny_run)
    model = run.settings.model.model_copy(update={"num_encoder_layers": 2})
    run.settings = run.settings.model_copy(update={"model": model})
    with pytest.raises(InputError, match="encoder_block_1"):
        load_model(run)
