"""Exports of models with each attention, position and layer answer as the run."""

import pytest
from small_transformers import SOURCES, random_run
from stock_server import StockProcess

import keras_seq
from keras_seq import runtime
from keras_seq.serving import export_onnx, export_saved_model

RECURRENT = {
    "model.family": "rnn",
    "model.embedding_units": 6,
    "model.encoder_units": 6,
    "model.decoder_units": 8,
    "model.attention_units": 6,
}
RECURRENT_OPTIONS = {
    "location": {"model.attention": "location", "model.num_decoder_layers": 2},
    "bahdanau-monotonic": {"model.attention": "bahdanau_monotonic"},
    "luong-monotonic": {"model.attention": "luong_monotonic"},
    "hard-with-window-members": {
        "model.attention": "hard",
        "model.attention_window": 1,
        "model.members": 2,
    },
    "copy-members": {"model.copy": True, "model.members": 2},
}
TRANSFORMER_OPTIONS = {
    "learned": {"model.position": "learned", "model.num_decoder_layers": 2},
    "relative": {"model.position": "relative", "model.num_encoder_layers": 1},
    "linear-biases": {"model.position": "linear_biases", "model.normalization": "rms"},
    "rotary": {
        "model.position": "rotary",
        "model.cross_position": "rotary",
        "model.activation": "swiglu",
        "model.copy": True,
    },
}
OPTIONS = TRANSFORMER_OPTIONS | {
    name: RECURRENT | options for name, options in RECURRENT_OPTIONS.items()
}
LINES = [*SOURCES, "das ähm", "", "the the the the"]


@pytest.mark.slow
@pytest.mark.weekly
@pytest.mark.parametrize("name", OPTIONS)
def test_exports_answer_as_the_run_with_each_option(tmp_path, name):
    run, _ = random_run(tmp_path / "run", **OPTIONS[name])
    version = export_saved_model(run, tmp_path / "served", verify=0)
    with StockProcess(version) as server:
        found = server.translate(LINES)
    expected = keras_seq.Translator.load(tmp_path / "run")(LINES)
    assert found == expected
    assert runtime.load(export_onnx(run, tmp_path / "onnx", verify=0))(LINES) == expected
    assert len(set(expected)) > 3
