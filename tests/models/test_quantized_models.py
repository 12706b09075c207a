"""`quantize` and `enable_lora` of whole models."""

import keras
import numpy as np
import pytest
from conformance.harness import build, make_arrays, run_eagerly
from conformance.table import ROWS
from keras import ops
from weekly import SLOW_AND_WEEKLY

from keras_seq import models
from keras_seq.search import beam_search

# One row of some models: the others differ from these in layers that have tests of their own.
MODELS = ("Transformer", "RecurrentSeq2Seq", "TransformerLanguageModel", "TextTagger")
FIRST = {row.public_name: row for row in reversed(ROWS) if row.public_name in MODELS}


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def kernels(model):
    return {weight.path: weight for weight in model.weights if weight.path.endswith("kernel")}


def int8(weight):
    return keras.backend.standardize_dtype(weight.dtype) == "int8"


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=name, marks=[] if name == "Transformer" else SLOW_AND_WEEKLY)
        for name, row in FIRST.items()
    ],
)
def test_a_quantized_model_survives_keras_files(row, tmp_path):
    model, arrays = build(row), make_arrays(row)
    model.quantize("int8")
    outputs = run_eagerly(row, model, arrays)
    model.save(tmp_path / "model.keras")
    restored = keras.saving.load_model(tmp_path / "model.keras")
    restored.save(tmp_path / "model.keras")
    restored = keras.saving.load_model(tmp_path / "model.keras")
    for got, want in zip(run_eagerly(row, restored, arrays), outputs, strict=True):
        np.testing.assert_array_equal(got, want)


def small_transformer():
    return models.Transformer(20, 20, 1, 1, units=16, feedforward_units=32, num_heads=2, seed=1)


IDS = np.array([[5, 6, 7, 3], [8, 3, 0, 0]], dtype="int32")
PAIR = {"source": IDS, "target": np.array([[2, 9, 5], [2, 4, 0]], dtype="int32")}


def test_a_quantized_transformer_has_logits_close_to_the_float_ones_and_searches():
    model = small_transformer()
    expected = numpy_of(model(PAIR))
    model.quantize("int8")
    assert all(map(int8, kernels(model).values()))
    # Each product adds an error of about 1 % to its outputs; see tests/layers/test_quantization.py.
    error = np.sqrt(np.mean((numpy_of(model(PAIR)) - expected) ** 2) / np.mean(expected**2))
    assert 0 < error < 0.03
    found = beam_search(model, IDS, beam_size=2, max_length=4)
    assert np.isfinite(found.scores).all()


def test_filters_choose_the_quantized_layers_by_name():
    for filters in ("qkv", ["qkv"], lambda layer: "qkv" in layer.name):
        model = small_transformer()
        model.quantize("int8", filters=filters)
        chosen = {path for path, weight in kernels(model).items() if int8(weight)}
        assert chosen == {path for path in kernels(model) if path.endswith("qkv_kernel")}


@pytest.mark.jax
def test_lora_of_a_model_searches_and_saves_the_sums(tmp_path):
    model = small_transformer()
    for layer in model.layers:
        if hasattr(layer, "enable_lora"):
            layer.enable_lora(2, b_initializer="random_normal")
    expected = numpy_of(model(PAIR))
    found = beam_search(model, IDS, beam_size=2, max_length=4)
    model.save(tmp_path / "model.keras")
    restored = keras.saving.load_model(tmp_path / "model.keras")
    assert not any("lora" in weight.path for weight in restored.weights)
    np.testing.assert_allclose(numpy_of(restored(PAIR)), expected, atol=1e-5)
    again = beam_search(restored, IDS, beam_size=2, max_length=4)
    np.testing.assert_array_equal(again.tokens, found.tokens)
    np.testing.assert_allclose(again.scores, found.scores, rtol=1e-4)
