"""Mixtures of generating and copying against plain loops."""

import numpy as np
import pytest
from keras import ops

from keras_seq.layers import PointerGenerator

pytestmark = [pytest.mark.jax, pytest.mark.torch]

# Two rows of four source tokens, three target steps, six words. Tokens 6 and 7 are no words.
SOURCE = np.array([[1, 5, 1, 7], [4, 6, 2, 0]], "int32")
VOCABULARY = 6


def arrays():
    generator = np.random.default_rng(3)
    inputs, logits = (generator.normal(size=(2, 3, size)).astype("float32") for size in (5, 6))
    attention = generator.random((2, 3, 4)) * (SOURCE != 0)[:, None]
    attention /= attention.sum(axis=-1, keepdims=True)
    return inputs, logits, attention.astype("float32")


def expected_probabilities(layer, inputs, logits, attention):
    kernel, bias = (ops.convert_to_numpy(weight) for weight in layer.weights)
    result = np.zeros(logits.shape)
    for row in range(2):
        for step in range(3):
            gate = 1 / (1 + np.exp(-(inputs[row, step] @ kernel + bias)[0]))
            copied, outside = np.zeros(VOCABULARY), 0.0
            for token, weight in zip(SOURCE[row], attention[row, step], strict=True):
                if token < VOCABULARY:
                    copied[token] += weight
                else:
                    outside += weight
            generated = np.exp(logits[row, step]) / np.exp(logits[row, step]).sum()
            generates = gate + (1 - gate) * outside
            result[row, step] = generates * generated + (1 - gate) * copied
    return result


def test_pointer_generator_equals_plain_loops():
    inputs, logits, attention = arrays()
    layer = PointerGenerator(VOCABULARY)
    got = layer(inputs, logits=logits, attention=attention, source=SOURCE)
    probabilities = np.exp(ops.convert_to_numpy(got))
    np.testing.assert_allclose(
        probabilities, expected_probabilities(layer, inputs, logits, attention), atol=1e-6
    )
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, atol=1e-6)


def test_pointer_generator_copies_a_token_that_is_never_generated():
    inputs, logits, attention = arrays()
    logits[..., 1] = -1e9
    layer = PointerGenerator(VOCABULARY)
    layer(inputs, logits=logits, attention=attention, source=SOURCE)
    layer.kernel.assign(np.zeros((5, 1)))
    layer.bias.assign([-30.0])
    got = np.exp(
        ops.convert_to_numpy(layer(inputs, logits=logits, attention=attention, source=SOURCE))
    )
    # The first source holds token 1 twice.
    np.testing.assert_allclose(got[0, :, 1], attention[0, :, 0] + attention[0, :, 2], atol=1e-6)


def test_pointer_generator_refuses_logits_of_another_size():
    inputs, logits, attention = arrays()
    with pytest.raises(ValueError, match="`logits` must have 6 features"):
        PointerGenerator(VOCABULARY)(
            inputs, logits=logits[..., :4], attention=attention, source=SOURCE
        )
