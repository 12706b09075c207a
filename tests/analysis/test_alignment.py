"""Conversion of attention between tokens to attention between words."""

import numpy as np

from keras_seq.analysis.alignment import word_weights


def test_word_weights_are_sums_over_source_tokens_and_means_over_target_tokens():
    weights = np.random.default_rng(1).dirichlet(np.ones(6), size=5)
    source, target = [[0], [1, 2], [4]], [[0, 1, 2], [3], []]
    expected = np.zeros((3, 3))
    for row, target_tokens in enumerate(target):
        for column, source_tokens in enumerate(source):
            sums = [sum(weights[t, s] for s in source_tokens) for t in target_tokens]
            expected[row, column] = sum(sums) / len(sums) if sums else 0.0
    np.testing.assert_allclose(word_weights(weights, source, target), expected, rtol=1e-12)


def test_source_tokens_beyond_the_attention_have_no_weight():
    # The source was truncated: the encoder never read the tokens of the last word.
    found = word_weights(np.array([[0.25, 0.75]]), [[0], [1, 2], [3]], [[0]])
    np.testing.assert_array_equal(found, [[0.25, 0.75, 0.0]])
