"""`quantize` and `enable_lora` of attentions, feed-forward networks and blocks.

Int8 rounds each row of activations and each column of a kernel to 127 steps of its largest
absolute value, so a number is off by at most absmax / 254.
"""

import keras
import numpy as np
import pytest
from conformance.harness import build, make_arrays, run_eagerly
from conformance.table import ROWS
from keras import ops

from keras_seq import layers

pytestmark = pytest.mark.torch

LAYERS = {
    "self": lambda: layers.MultiHeadSelfAttention(2),
    "self_sized": lambda: layers.MultiHeadSelfAttention(2, key_size=8, value_size=4, causal=True),
    "cross": lambda: layers.MultiHeadCrossAttention(2),
    "bahdanau": lambda: layers.BahdanauAttention(16, normalize=True),
    "luong": lambda: layers.LuongAttention("general"),
    "luong_concat": lambda: layers.LuongAttention("concat", units=16),
    "location": lambda: layers.LocationSensitiveAttention(16, filters=4, kernel_size=3),
    "bahdanau_monotonic": lambda: layers.BahdanauMonotonicAttention(16),
    "luong_monotonic": lambda: layers.LuongMonotonicAttention(),
    "feed_forward": lambda: layers.FeedForward(32),
    "gated": lambda: layers.FeedForward(32, activation="swiglu"),
    "encoder_block": lambda: layers.TransformerEncoderBlock(2, 32),
    "decoder_block": lambda: layers.TransformerDecoderBlock(2, 32),
    "convolutional_encoder": lambda: layers.ConvolutionalEncoder(16, 1, 3),
    "ctc_logits": lambda: layers.CTCLogits(16),
}
# JAX compiles each operation of a layer, which takes seconds for large ones.
ON_JAX = ("self", "bahdanau")
every_layer = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.jax if name in ON_JAX else ()) for name in LAYERS],
)
CHANGEABLE = ("MultiHead", "TransformerEncoderB", "TransformerDecoderB", "Bahdanau", "Luong")
FAST = ("MultiHeadSelfAttention-causal", "BahdanauAttention-plain")
STEP_ROWS = [
    pytest.param(row, id=row.name, marks=pytest.mark.jax if row.name in FAST else pytest.mark.slow)
    for row in ROWS
    if row.step and row.public_name.startswith(CHANGEABLE)
]


def normal(*shape, seed=0):
    array = np.random.default_rng(seed).normal(size=shape).astype("float32")
    return ops.convert_to_tensor(array)


def arguments(layer):
    """Returns a query and, for a layer that reads one, a value."""
    query, value = normal(3, 7, 16), normal(3, 5, 12, seed=1)
    return [query, value] if hasattr(layer, "project") else [query]


def call(layer):
    """Returns the outputs of a layer, without the attention weights."""
    outputs = layer(*arguments(layer))
    return outputs[0] if isinstance(outputs, tuple) else outputs


def functional(layer):
    tensors = [keras.Input((None, tensor.shape[-1])) for tensor in arguments(layer)]
    outputs = layer(*tensors)
    return keras.Model(tensors, outputs[0] if isinstance(outputs, tuple) else outputs)


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def kernels(layer):
    """Returns the kernels that `quantize` and `enable_lora` concern, by path."""
    return {
        weight.path: weight
        for weight in layer.weights
        if weight.path.endswith("kernel") and "convolution_" not in weight.path
    }


def relative_error(got, expected):
    """Returns the root mean square of the difference, relative to that of what is expected."""
    return np.sqrt(np.mean((got - expected) ** 2) / np.mean(expected**2))


def int8(weight):
    return keras.backend.standardize_dtype(weight.dtype) == "int8"


@pytest.mark.jax
@pytest.mark.parametrize("sizes", [{}, {"key_size": 8, "value_size": 4}], ids=str)
def test_int8_projection_is_within_half_a_step_of_each_factor(sizes):
    layer = layers.MultiHeadSelfAttention(2, **sizes)
    layer.build((None, None, 16))
    projection, rows = layer.qkv_projection, numpy_of(normal(9, 16))
    kernel = numpy_of(projection.kernel).astype("float64")
    layer.quantize("int8")
    outputs = numpy_of(projection(ops.convert_to_tensor(rows)))
    row_step = np.abs(rows).max(1, keepdims=True) / 254
    column_step = np.abs(kernel).max(0) / 254
    bound = (
        np.abs(rows) @ np.broadcast_to(column_step, kernel.shape)
        + row_step * np.abs(kernel).sum(0)
        + 16 * row_step * column_step
    )
    error = np.abs(outputs - rows @ kernel)
    assert (error <= bound * 1.001 + 1e-6).all()
    assert error.max() > 0.1 * bound.mean()


@every_layer
def test_int8_layer_has_int8_kernels_and_outputs_close_to_the_float_ones(name):
    layer = LAYERS[name]()
    expected = numpy_of(call(layer))
    paths = set(kernels(layer))
    layer.quantize("int8")
    assert set(kernels(layer)) == paths
    assert all(map(int8, kernels(layer).values()))
    # Rounding has the standard deviation absmax / 127 / 12 ** 0.5. With an absmax of 3 standard
    # deviations this is 0.7 % of each factor, and 1 % of a product. A block has 8 products.
    assert 0 < relative_error(numpy_of(call(layer)), expected) < 0.03
    with pytest.raises(ValueError, match="already quantized"):
        layer.quantize("int8")


@pytest.mark.parametrize("row", STEP_ROWS)
@pytest.mark.parametrize("change", ["int8", "lora"])
def test_step_form_of_a_changed_layer_equals_its_call(row, change):
    layer, arrays = build(row), make_arrays(row)
    if change == "int8":
        layer.quantize("int8")
    else:
        layer.enable_lora(2, b_initializer="random_normal")
    expected = run_eagerly(row, layer, arrays)[0]
    tensors = {name: ops.convert_to_tensor(array) for name, array in arrays.items()}
    stepwise = numpy_of(row.step(layer, tensors))
    real = np.ones(expected.shape[:2], bool)
    for name in ("mask", "inputs_mask", "query_mask"):
        real &= arrays.get(name, real)
    # Another order of a sum can move a number across a limit of rounding to int8.
    tolerance = 0.02 if change == "int8" else 1e-5
    assert relative_error(stepwise[real], expected[real]) < tolerance


@every_layer
def test_a_quantized_layer_survives_keras_files(name, tmp_path):
    layer = LAYERS[name]()
    call(layer)
    model = functional(layer)
    layer.quantize("int8")
    expected = numpy_of(call(layer))
    for _ in range(2):
        model.save(tmp_path / "model.keras")
        model = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(numpy_of(call(model.layers[-1])), expected)
    assert all(map(int8, kernels(model.layers[-1]).values()))


@every_layer
def test_lora_changes_no_output_at_first_and_trains_no_kernel(name):
    layer = LAYERS[name]()
    expected = numpy_of(call(layer))
    before = {path: numpy_of(weight) for path, weight in kernels(layer).items()}
    trained = {weight.path for weight in layer.trainable_weights}
    layer.enable_lora(2)
    np.testing.assert_array_equal(numpy_of(call(layer)), expected)
    added = {weight.path for weight in layer.trainable_weights} - trained
    assert added == {f"{lora}_{part}" for lora in map(lora_path, before) for part in "ab"}
    model = functional(layer)
    frozen = {weight.path: numpy_of(weight) for weight in layer.non_trainable_weights}
    assert set(before) <= set(frozen)
    matrices = {w.path: numpy_of(w) for w in layer.trainable_weights if w.path in added}
    model.compile(keras.optimizers.SGD(0.1), "mse")
    # In the first step B is 0, so that A has no gradient.
    model.fit(list(map(numpy_of, arguments(layer))), np.ones_like(expected), epochs=2, verbose=0)
    for path, weight in kernels(layer).items():
        np.testing.assert_array_equal(numpy_of(weight), before[path])
    for weight in layer.non_trainable_weights:
        np.testing.assert_array_equal(numpy_of(weight), frozen[weight.path])
    for weight in layer.trainable_weights:
        if weight.path in added:
            assert (numpy_of(weight) != matrices[weight.path]).any(), weight.path


def lora_path(kernel):
    return kernel.removesuffix("kernel") + "lora_kernel"


@pytest.mark.jax
def test_lora_outputs_equal_those_of_the_summed_kernel():
    layer = layers.MultiHeadCrossAttention(2)
    call(layer)
    layer.enable_lora(3, lora_alpha=6, b_initializer="random_normal")
    plain = layers.MultiHeadCrossAttention(2)
    call(plain)
    named = {weight.path.split("/")[-1]: numpy_of(weight) for weight in layer.weights}
    for weight in plain.weights:
        name = weight.path.split("/")[-1]
        array = named[name]
        if name.endswith("kernel"):
            prefix = name.removesuffix("kernel") + "lora_kernel_"
            array = array + 6 / 3 * named[f"{prefix}a"] @ named[f"{prefix}b"]
        weight.assign(array)
    np.testing.assert_allclose(numpy_of(call(layer)), numpy_of(call(plain)), atol=1e-5)


def test_lora_trains_on_top_of_a_quantized_block():
    block = layers.TransformerEncoderBlock(2, 32)
    call(block)
    block.quantize("int8")
    expected = numpy_of(call(block))
    block.enable_lora(2)
    np.testing.assert_allclose(numpy_of(call(block)), expected, atol=1e-6)
    assert all(map(int8, kernels(block).values()))
    assert sum("lora" in weight.path for weight in block.trainable_weights) == 8
