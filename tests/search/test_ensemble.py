"""Several models as one ensemble: the mean of their probabilities."""

import numpy as np
import pytest
import reference_recurrent
import reference_transformer as reference
from differentiation import quick
from keras import ops
from plain_search import assert_same_results, plain_beam_search, results_of

from keras_seq import backend
from keras_seq.models import Ensemble, RecurrentSeq2Seq, Transformer
from keras_seq.search import beam_search, forced_scores, sample

pytestmark = [pytest.mark.jax, pytest.mark.torch]

VOCABULARY = 9
SOURCE = np.array([[5, 8, 4, 3], [7, 3, 0, 0]], "int32")


@pytest.fixture(scope="module")
def models():
    one = Transformer(VOCABULARY, VOCABULARY, 1, 1, units=8, feedforward_units=8, num_heads=2)
    other = RecurrentSeq2Seq(
        VOCABULARY, VOCABULARY, embedding_units=4, encoder_units=4, decoder_units=8,
        attention_units=4,
    )  # fmt: skip
    for seed, model in enumerate((one, other)):
        reference.randomize(model, seed=seed)
    return one, other


def probabilities(model, row, tokens):
    """Next-token probabilities from numpy, because JAX would compile each new length."""
    source, target = row[row != 0], np.array([2, *tokens])
    if isinstance(model, Transformer):
        weights = reference.named_arrays(model)
        logits = reference.transformer_row(source, target, weights, 2, "pre")
    else:
        weights = reference_recurrent.named_arrays(model)
        logits = reference_recurrent.recurrent_seq2seq(source, target, weights, model.get_config())
    return reference.softmax(logits[-1])


def compiled(model, search, **options):
    return backend.compiled(
        lambda source: search(model, source, **options), model.variables, ranks=[2]
    )


def test_ensemble_search_uses_the_mean_of_the_probabilities(models):
    result = compiled(Ensemble(models), beam_search, beam_size=3, n_best=2, max_length=6)(SOURCE)
    for row in range(2):

        def chain(tokens, row=row):
            return np.log(np.mean([probabilities(m, SOURCE[row], tokens) for m in models], axis=0))

        assert_same_results(results_of(result, row), plain_beam_search(chain, 3, 2, 6))


@pytest.mark.slow
def test_ensemble_of_a_model_with_itself_equals_the_model(models):
    for model in models:
        alone = compiled(model, beam_search, beam_size=3, max_length=8)(SOURCE)
        twice = compiled(Ensemble([model, model]), beam_search, beam_size=3, max_length=8)(SOURCE)
        for row in range(2):
            assert_same_results(results_of(twice, row), results_of(alone, row))


def test_forced_scores_of_an_ensemble_equal_scores_of_its_samples(models):
    ensemble = Ensemble(models)
    result = compiled(ensemble, sample, n_best=3, max_length=5, alpha=0.0)(SOURCE)
    found = [(row, one) for row in range(2) for one in results_of(result, row)]
    target = np.zeros((len(found), 5), "int32")
    for place, (_, one) in enumerate(found):
        target[place, : len(one.tokens)] = one.tokens
    shifted = np.where(target == 0, 0, np.pad(target[:, :-1], [(0, 0), (1, 0)], constant_values=2))
    score_given = quick(lambda *ids: forced_scores(ensemble, *ids))
    scores = score_given(SOURCE[[row for row, _ in found]], shifted, target)
    totals = np.asarray(ops.convert_to_numpy(scores)).sum(axis=1)
    np.testing.assert_allclose(totals, [one.score for _, one in found], atol=1e-4)


@pytest.mark.slow
def test_coverage_penalty_of_an_ensemble_equals_that_of_its_repeated_model(models):
    one = models[0]
    alone = compiled(one, beam_search, beam_size=3, max_length=6, coverage_penalty=0.5)
    twice = compiled(
        Ensemble([one, one]), beam_search, beam_size=3, max_length=6, coverage_penalty=0.5
    )
    without = compiled(one, beam_search, beam_size=3, max_length=6)
    for row in range(2):
        found = results_of(alone(SOURCE), row)
        assert_same_results(results_of(twice(SOURCE), row), found)
        assert found != results_of(without(SOURCE), row)


def test_ensemble_rejects_different_vocabularies_and_an_empty_list(models):
    larger = Transformer(VOCABULARY, 11, 1, 1, units=8, feedforward_units=8, num_heads=2)
    with pytest.raises(ValueError, match=r"share a vocabulary, received .*\[9, 11\]"):
        Ensemble([models[0], larger])
    with pytest.raises(ValueError, match="at least one model"):
        Ensemble([])
