"""The decoder block against numpy, and its step form under reordered hypotheses."""

import keras
import numpy as np
import pytest
import reference_transformer as reference
from differentiation import gradients, quick
from keras import ops

from keras_seq.layers import TransformerDecoderBlock, beam_cache_mask, update_ancestors

HEADS, FEATURES, MEMORY_FEATURES, STEPS, SOURCE_STEPS = 2, 6, 4, 5, 4
SIZE = FEATURES // HEADS
LENGTHS, SOURCE_LENGTHS = (5, 3, 1), (2, 4, 1)
MASK = np.arange(STEPS)[None] < np.array(LENGTHS)[:, None]
MEMORY_MASK = np.arange(SOURCE_STEPS)[None] < np.array(SOURCE_LENGTHS)[:, None]


def made(**arguments):
    block = TransformerDecoderBlock(HEADS, 7, name="block", **arguments)
    block.build((None, None, FEATURES), (None, None, MEMORY_FEATURES))
    reference.randomize(block)
    return block


def inputs():
    return np.random.default_rng(0).normal(size=(3, STEPS, FEATURES)).astype("float32")


def memories():
    shape = (3, SOURCE_STEPS, MEMORY_FEATURES)
    return np.random.default_rng(1).normal(size=shape).astype("float32")


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_decoder_block_equals_numpy(norm):
    block, x, memory = made(norm=norm), inputs(), memories()
    outputs = numpy_of(block(x, memory, inputs_mask=MASK, memory_mask=MEMORY_MASK))
    arrays = reference.named_arrays(block, "block/")
    for row, (length, source_length) in enumerate(zip(LENGTHS, SOURCE_LENGTHS, strict=True)):
        expected = reference.decoder_block(
            x[row, :length].astype("float64"),
            memory[row, :source_length].astype("float64"),
            arrays,
            HEADS,
            norm,
        )
        np.testing.assert_allclose(outputs[row, :length], expected, atol=1e-5)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_reordered_hypotheses_equal_a_full_pass_over_their_sequences(norm):
    """Runs single steps as a search does, and compares each hypothesis with one full pass."""
    rows, beam = 3, 2
    block = made(norm=norm)
    memory = block.project(memories(), MEMORY_MASK)
    # The memory has one entry per row, whatever the number of hypotheses.
    assert {tuple(part.shape) for part in memory.values()} == {(rows, HEADS, SOURCE_STEPS, SIZE)}
    generator = np.random.default_rng(2)
    cache = {
        name: ops.zeros((rows, HEADS, STEPS, beam, SIZE), dtype="float32")
        for name in ("key", "value")
    }
    past = ops.zeros((rows, beam, STEPS, beam), dtype="bool")
    fed = np.zeros((rows, beam, STEPS, FEATURES), "float32")
    came = np.zeros_like(fed)

    @quick
    def run_step(inputs, position, past, cache):
        past = update_ancestors(past, position)
        bias = beam_cache_mask(past)
        return past, *block.step(inputs, position, bias, cache, memory, MEMORY_MASK)

    for step in range(STEPS):
        fed[:, :, step] = generator.normal(size=(rows, beam, FEATURES))
        past, outputs, cache = run_step(fed[:, :, step], step, past, cache)
        came[:, :, step] = numpy_of(outputs)
        parents = generator.integers(0, beam, (rows, beam))
        place = np.arange(rows)[:, None], parents
        fed, came = fed[place], came[place]
        past = ops.convert_to_tensor(numpy_of(past)[place])
    whole = block(
        fed.reshape(rows * beam, STEPS, FEATURES),
        np.repeat(memories(), beam, axis=0),
        memory_mask=np.repeat(MEMORY_MASK, beam, axis=0),
    )
    np.testing.assert_allclose(came.reshape(whole.shape), whole, atol=1e-5)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_padding_contents_change_no_gradient(norm):
    block, x, memory = made(norm=norm), inputs(), memories()
    spoiled = np.where(MASK[..., None], x, np.nan).astype("float32")
    spoiled_memory = np.where(MEMORY_MASK[..., None], memory, np.nan).astype("float32")

    def total(x, memory):
        outputs = block(x, memory, inputs_mask=MASK, memory_mask=MEMORY_MASK)
        return ops.sum(ops.where(MASK[..., None], outputs, 0.0) ** 2)

    by_input, by_weight = gradients(total, [x, memory], block.trainable_weights)
    by_spoiled, by_weight_of_spoiled = gradients(
        total, [spoiled, spoiled_memory], block.trainable_weights
    )
    for left, right in zip(by_spoiled + by_weight_of_spoiled, by_input + by_weight, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-4)


def test_fully_masked_memory_gives_finite_outputs_independent_of_it():
    block, x = made(), inputs()
    nothing = np.zeros((3, SOURCE_STEPS), bool)
    spoiled = np.full((3, SOURCE_STEPS, MEMORY_FEATURES), np.nan, "float32")
    outputs = numpy_of(block(x, spoiled, memory_mask=nothing))
    assert np.isfinite(outputs).all()
    np.testing.assert_allclose(outputs, block(x, memories(), memory_mask=nothing), atol=1e-6)


def test_decoder_block_takes_both_embedding_masks_and_keeps_the_target_mask():
    block = made()
    of_target = keras.layers.Embedding(9, FEATURES, mask_zero=True)
    of_source = keras.layers.Embedding(9, MEMORY_FEATURES, mask_zero=True)
    target, source = np.where(MASK, 5, 0), np.where(MEMORY_MASK, 6, 0)
    expected = numpy_of(
        block(
            numpy_of(of_target(target)),
            numpy_of(of_source(source)),
            inputs_mask=MASK,
            memory_mask=MEMORY_MASK,
        )
    )
    got = block(of_target(target), of_source(source))
    np.testing.assert_allclose(got, expected, atol=1e-6)
    pooled = keras.layers.GlobalAveragePooling1D()(got)
    means = [expected[row, :length].mean(axis=0) for row, length in enumerate(LENGTHS)]
    np.testing.assert_allclose(pooled, means, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"norm": None}, '`norm` must be "pre" or "post", received None'),
        ({"dropout": 1}, r"`dropout`.*\[0, 1\)"),
        ({"num_heads": 0}, "`num_heads`"),
        ({"feedforward_units": 0}, "`units`"),
    ],
)
def test_invalid_decoder_block_arguments_raise_value_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        TransformerDecoderBlock(**{"num_heads": 2, "feedforward_units": 4} | arguments)
