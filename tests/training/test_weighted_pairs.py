"""A pair of weight 3 has the same gradient as three copies of the pair."""

import keras
import numpy as np
import pytest
from differentiation import gradients, quick

from keras_seq.data import BatchStream, TokenCorpus, TokenPair, write_corpus
from keras_seq.losses.sequence_cross_entropy import SequenceCrossEntropy
from keras_seq.run.models import build_model
from keras_seq.settings import load_settings
from keras_seq.training.feed import fit_batch

pytestmark = pytest.mark.jax

PAIRS = [([4, 5, 6], [7, 8]), ([9], [4, 5, 6, 7]), ([8, 8], [9])]
MODELS = {
    "transformer": {
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "model.units": 8,
        "model.feedforward_units": 8,
        "model.num_heads": 2,
    },
    "rnn": {
        "model.family": "rnn",
        "model.embedding_units": 6,
        "model.encoder_units": 6,
        "model.decoder_units": 6,
        "model.attention_units": 6,
    },
}


@pytest.mark.parametrize("family", MODELS)
def test_gradient_of_a_weighted_pair_equals_that_of_its_repetitions(tmp_path, family):
    limits = {"max_source_length": 9, "max_target_length": 9}
    weighted = [TokenPair(*pair, weight) for pair, weight in zip(PAIRS, (3, 1, 2), strict=True)]
    repeated = [pair for pair, count in zip(PAIRS, (3, 1, 2), strict=True) for _ in range(count)]
    write_corpus(tmp_path / "weighted", weighted, weights=True, **limits)
    write_corpus(tmp_path / "repeated", repeated, **limits)
    settings = load_settings(overrides=MODELS[family])
    model = build_model(settings, 10, 10)
    loss = SequenceCrossEntropy(0.1, reduction="sum")
    found = []
    for name in ("weighted", "repeated"):
        stream = BatchStream(TokenCorpus.open(tmp_path / name), batch_tokens=100, seed=1)
        inputs, targets, weights = fit_batch(stream, 0)

        def total(inputs=inputs, targets=targets, weights=weights):
            return loss(targets, model(inputs, training=False), sample_weight=weights)

        value = float(keras.ops.convert_to_numpy(quick(total)()))
        found.append((len(targets), value, gradients(total, [], model.trainable_variables)[1]))
    (rows, value, by_weight), (more_rows, same_value, by_repetition) = found
    assert (rows, more_rows) == (3, 6)
    np.testing.assert_allclose(value, same_value, rtol=1e-5)
    for one, other in zip(by_weight, by_repetition, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-7)
    assert max(np.abs(gradient).max() for gradient in by_weight) > 0.01
