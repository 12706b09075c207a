"""Models with `copy=True` against models without, whose weights they share."""

import numpy as np
import pytest
from keras import ops
from weekly import SLOW_AND_WEEKLY

from keras_seq.models import Ensemble, RecurrentSeq2Seq, Transformer
from keras_seq.search import beam_search, forced_scores

pytestmark = pytest.mark.jax

VOCABULARY = 20
# Ids from 20 on are features, which only the source has.
SOURCE = np.array([[5, 6, 5, 22, 3], [7, 21, 3, 0, 0]], np.int32)
TARGET = np.array([[2, 6, 4, 7], [2, 6, 0, 0]], np.int32)
INPUTS = {"source": SOURCE, "target": TARGET}
GATE = 0.7


def transformer(**arguments):
    sizes = {"units": 8, "feedforward_units": 16, "num_heads": 2}
    return Transformer(24, VOCABULARY, 2, 2, **sizes, **arguments)


def recurrent(**arguments):
    sizes = {"embedding_units": 4, "encoder_units": 4, "decoder_units": 8, "attention_units": 8}
    return RecurrentSeq2Seq(24, VOCABULARY, **sizes, num_decoder_layers=2, **arguments)


each_model = pytest.mark.parametrize(
    "make", [transformer, pytest.param(recurrent, marks=SLOW_AND_WEEKLY)]
)


def with_constant_gate(make):
    """A model that copies with probability 1 - GATE, and one with the same weights that does not.

    All other weights are random.
    """
    copying, plain = make(copy=True), make()
    generator = np.random.default_rng(5)
    values = {weight.path: generator.normal(size=weight.shape) for weight in plain.weights}
    values |= {"pointer/kernel": np.zeros((8, 1)), "pointer/bias": [np.log(GATE / (1 - GATE))]}
    for model in (copying, plain):
        for weight in model.weights:
            if "seed_generator" not in weight.path:
                weight.assign(values[weight.path])
    return copying, plain


@each_model
def test_copying_model_adds_attention_to_the_softmax(make):
    copying, plain = with_constant_gate(make)
    attention = ops.convert_to_numpy(plain.with_attention()(INPUTS)["attention"])
    softmax = ops.convert_to_numpy(ops.softmax(plain(INPUTS)))
    got = np.exp(ops.convert_to_numpy(copying(INPUTS)))
    for row, ids in enumerate(SOURCE):
        for step in range(np.count_nonzero(TARGET[row])):
            expected = GATE * softmax[row, step]
            for token, weight in zip(ids, attention[row, step], strict=True):
                # The weights of features go to the softmax.
                copied = (1 - GATE) * weight
                expected = expected + copied * (
                    softmax[row, step] if token >= VOCABULARY else np.eye(VOCABULARY)[token]
                )
            np.testing.assert_allclose(got[row, step], expected, atol=1e-5)


@each_model
def test_search_of_a_model_that_always_copies_finds_tokens_of_the_source_only(make):
    copying, _ = with_constant_gate(make)
    copying.get_layer("pointer").bias.assign([-60.0])
    result = beam_search(copying, SOURCE[:, :3], beam_size=2, max_length=4)
    for row, tokens in enumerate(ops.convert_to_numpy(result.tokens)):
        # The first row has no end token to copy. The second ends.
        assert set(tokens.ravel().tolist()) <= {*SOURCE[row, :3].tolist(), 0}


@each_model
def test_scores_of_a_search_are_those_of_the_mixture_with_coverage(make):
    copying, _ = with_constant_gate(make)
    options = {"beam_size": 3, "n_best": 3, "max_length": 4, "length_normalization": "none"}
    result = beam_search(copying, SOURCE, coverage_penalty=0.3, **options)
    tokens = ops.convert_to_numpy(result.tokens)
    for n in range(3):
        output = tokens[:, n]
        target = np.where(output == 0, 0, np.pad(output[:, :-1], [(0, 0), (1, 0)]))
        target[:, 0] = 2
        inputs = {"source": SOURCE, "target": target}
        found = copying.with_attention()(inputs)
        log_probabilities = ops.convert_to_numpy(found["logits"])
        attention = ops.convert_to_numpy(found["attention"])
        forced = ops.convert_to_numpy(forced_scores(copying, SOURCE, target, output))
        for row, ids in enumerate(output):
            steps = np.count_nonzero(ids)
            total = sum(log_probabilities[row, step, ids[step]] for step in range(steps))
            np.testing.assert_allclose(forced[row].sum(), total, rtol=1e-4)
            covered = attention[row, :steps, SOURCE[row] > 0].sum(axis=1)
            expected = total + 0.3 * np.log(np.clip(covered, 1e-10, 1)).sum()
            np.testing.assert_allclose(float(result.scores[row, n]), expected, rtol=1e-4)


@each_model
def test_ensemble_of_copying_models_has_their_mean_probability(make):
    models = [with_constant_gate(make)[0] for _ in range(2)]
    for weight in models[1].weights:
        if "seed_generator" not in weight.path:
            weight.assign(-0.5 * weight)
    output = np.array([[6, 4, 7, 3], [6, 3, 0, 0]], np.int32)
    each = [ops.convert_to_numpy(forced_scores(model, SOURCE, TARGET, output)) for model in models]
    found = ops.convert_to_numpy(forced_scores(Ensemble(models), SOURCE, TARGET, output))
    expected = np.log(np.mean(np.exp(each), axis=0))
    np.testing.assert_allclose(found, np.where(output == 0, 0, expected), rtol=1e-4, atol=1e-6)


def test_copying_model_is_rebuilt_from_its_config():
    model = recurrent(copy=True)
    again = RecurrentSeq2Seq.from_config(model.get_config())
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(
        ops.convert_to_numpy(again(INPUTS)), ops.convert_to_numpy(model(INPUTS))
    )
