"""Likelihoods of given translations, against numpy on the model's logits for each pair."""

import math

import keras
import numpy as np
import pytest
from chain_model import log_softmax
from weekly import weekly_but

from keras_seq.inference.likelihood import (
    MAX_TARGET_LENGTH,
    Likelihood,
    LikelihoodScorer,
    LongTargetError,
    perplexity,
    perplexity_of,
)
from keras_seq.inference.translator import Translator
from keras_seq.models import RecurrentSeq2Seq, Transformer
from keras_seq.run import Run
from keras_seq.run.models import load_model
from keras_seq.text import InputError

BOS, EOS = 2, 3
SOURCES = ["March 5, 2021", "5 mai 1999", "5 mai 1999", "1. Jan. 07", "", "July", "friday " * 20]
TARGETS = ["2021-03-05", "1999-05-05", "unlikely, 😀 \u2028 text", "", "2001-01-01", "07", "x"]


class Parts:
    """The model and tokenizers of a run, and a likelihood scorer."""

    def __init__(self, path):
        run = Run.open(path)
        self.model = load_model(run)
        self.source, self.target = run.source_tokenizer, run.target_tokenizer
        self.settings = run.settings
        self.scorer = LikelihoodScorer(self.model, self.source, self.target)

    def by_numpy(self, source_ids, target_ids):
        """The log-probability of each token, from the logits of this pair alone."""
        # Padded because Keras warns about a softmax over one step.
        inputs = {"source": [[*source_ids, EOS, 0]], "target": [[BOS, *target_ids]]}
        logits = self.model({name: np.array(ids, "int32") for name, ids in inputs.items()})
        logits = keras.ops.convert_to_numpy(logits)[0].astype(np.float64)
        return log_softmax(logits)[np.arange(len(target_ids) + 1), [*target_ids, EOS]]


@pytest.fixture(scope="module", params=weekly_but(["tiny_run", "tiny_rnn_run"], "tiny_run"))
def parts(request):
    return Parts(request.getfixturevalue(request.param))


@pytest.mark.slow
def test_likelihood_of_each_pair_equals_numpy(parts):
    every = parts.scorer(SOURCES, TARGETS)
    ids = zip(parts.source.encode(SOURCES), parts.target.encode(TARGETS), strict=True)
    for (source, target), found in zip(ids, every, strict=True):
        expected = parts.by_numpy(source, target)
        assert found.tokens == (*target, EOS)
        np.testing.assert_allclose(found.log_probabilities, expected, atol=1e-4)
        assert found.total == pytest.approx(expected.sum(), abs=1e-4)
        assert not found.source_truncated


@pytest.mark.slow
def test_likelihood_of_a_translation_equals_its_search_score(parts):
    # One limit truncates hypotheses, the other lets them end.
    for limit in (3, 40):
        search = parts.settings.search.model_copy(update={"max_length": limit, "n_best": 2})
        translator = Translator(parts.model, parts.source, parts.target, search)
        for line, hypotheses in zip(SOURCES, translator.translate(SOURCES), strict=True):
            for one in hypotheses:
                (found,) = parts.scorer.of_tokens([line], [one.tokens])
                values = found.log_probabilities
                values = values[:-1] if one.truncated else values
                assert one.score == pytest.approx(math.fsum(values) / len(values), abs=1e-4)


@pytest.mark.slow
def test_a_pair_does_not_depend_on_the_others(parts):
    # More pairs than a batch holds, in reverse order.
    many = [(s, t) for s in SOURCES for t in TARGETS] * 20
    together = parts.scorer(*zip(*many[::-1], strict=True))[::-1]
    for i in range(0, 49, 5):
        (alone,) = parts.scorer([many[i][0]], [many[i][1]])
        for again in together[i::49]:
            assert alone.tokens == again.tokens
            np.testing.assert_allclose(
                alone.log_probabilities, again.log_probabilities, atol=1e-5, rtol=1e-5
            )


def test_two_blank_lines_have_no_tokens(parts):
    every = parts.scorer(["", " \t", "July", " "], ["", " ", " ", "07"])
    assert every[:2] == [Likelihood((), ())] * 2
    assert every[0].total == 0
    # If only one side is blank, that side is a lone end token.
    np.testing.assert_allclose(
        every[2].log_probabilities, parts.by_numpy(parts.source.encode(["July"])[0], []), atol=1e-4
    )
    np.testing.assert_allclose(
        every[3].log_probabilities, parts.by_numpy([], parts.target.encode(["07"])[0]), atol=1e-4
    )
    assert parts.scorer([], []) == []


def test_long_source_is_truncated_as_for_a_translation(parts):
    scorer = LikelihoodScorer(parts.model, parts.source, parts.target, max_source_length=4)
    (ids,) = parts.source.encode(["5 mai 1999"])
    assert len(ids) > 4
    # The end of the second line is so far away that it is not even read.
    for line in ("5 mai 1999", "5 mai 1999 " * 1000):
        (found,) = scorer([line], ["1999"])
        assert found.source_truncated
        np.testing.assert_allclose(
            found.log_probabilities,
            parts.by_numpy(ids[:4], parts.target.encode(["1999"])[0]),
            atol=1e-4,
        )


def test_likelihood_scorer_rejects_invalid_inputs(parts):
    with pytest.raises(TypeError, match="must be a list of strings"):
        parts.scorer("a", ["a"])
    with pytest.raises(ValueError, match="received 1 sources and 2 targets, expected"):
        parts.scorer(["a"], ["a", "b"])
    with pytest.raises(LongTargetError, match=r"translation 2: a translation of 5,000 tokens"):
        parts.scorer.of_tokens(["a", "b"], [[9], [9] * 5000])
    longest = [9] * MAX_TARGET_LENGTH
    assert len(parts.scorer.of_tokens(["a"], [longest])[0].tokens) == MAX_TARGET_LENGTH + 1


@pytest.mark.parametrize("family", ["transformer", "rnn"])
def test_a_uniform_model_has_the_perplexity_of_its_vocabulary(tiny_run, family):
    tokenizer = Run.open(tiny_run).target_tokenizer
    size = tokenizer.vocabulary_size
    if family == "transformer":
        model = Transformer(
            size, size, units=8, num_heads=2, feedforward_units=8,
            num_encoder_layers=1, num_decoder_layers=1,
        )  # fmt: skip
    else:
        model = RecurrentSeq2Seq(
            size, size, embedding_units=4, encoder_units=4, decoder_units=4, attention_units=4
        )
    for weight in model.trainable_weights:
        weight.assign(np.zeros(weight.shape))
    scorer = LikelihoodScorer(model, tokenizer, tokenizer)
    found = scorer(SOURCES, TARGETS)
    assert perplexity(found) == pytest.approx(size, rel=1e-6)
    np.testing.assert_allclose(found[2].log_probabilities, -np.log(size), rtol=1e-6)
    # Weights that are NaN raise an error.
    model.trainable_weights[-1].assign(np.full(model.trainable_weights[-1].shape, np.nan))
    with pytest.raises(InputError, match="not finite numbers"):
        scorer(SOURCES, TARGETS)


def test_perplexity_is_a_mean_over_tokens():
    found = [Likelihood((9, 3), (-1.0, -2.0)), Likelihood((), ()), Likelihood((3,), (-6.0,))]
    assert perplexity(found) == pytest.approx(math.exp(3))
    assert perplexity_of(-7000.1, 10) == math.inf
    for nothing in ([], [Likelihood((), ())]):
        with pytest.raises(ValueError, match="no tokens"):
            perplexity(nothing)


def test_likelihood_scorer_loads_from_a_run(tiny_run):
    parts, loaded = Parts(tiny_run), LikelihoodScorer.load(tiny_run)
    assert loaded(SOURCES, TARGETS) == parts.scorer(SOURCES, TARGETS)
    with pytest.raises(InputError, match="no such run directory"):
        LikelihoodScorer.load(tiny_run / "absent")
