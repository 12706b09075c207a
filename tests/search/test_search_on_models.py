"""Both model families, searched in every mode of a backend, against slow numpy models.

Results of graph mode, eager mode, XLA and JAX are compared with plain Python searches over the
numpy models. `test_backends.py` runs this file on JAX.
"""

import functools

import numpy as np
import pytest
import reference_recurrent
import reference_transformer
from differentiation import quick
from keras import ops
from plain_search import (
    START,
    Rules,
    assert_same_results,
    constrained,
    penalty,
    plain_beam_search,
    plain_samples,
    results_of,
)
from weekly import weekly_but

from keras_seq import backend
from keras_seq.models import RecurrentSeq2Seq, Transformer
from keras_seq.search import beam_search, forced_scores, sample

pytestmark = pytest.mark.jax

VOCABULARY, LIMIT = 9, 7
SOURCE = np.array([[5, 8, 4, 3], [7, 3, 0, 0], [3, 0, 0, 0], [8, 8, 3, 0]], "int32")
PREFIX = np.array([[6, 0], [4, 5], [0, 0], [0, 0]], "int32")
RECURRENT = {
    "encoder": "recurrent",
    "cell": "lstm",
    "num_encoder_layers": 1,
    "num_decoder_layers": 2,
    "embedding_units": 6,
    "encoder_units": 4,
    "decoder_units": 8,
    "attention": "bahdanau",
    "attention_units": 5,
    "input_feeding": True,
    "context": "every_step",
    "bridge": "dense",
    "share_embeddings": False,
    "tie_output": False,
}
FAMILIES = ["transformer", "rnn"]
WAYS = ["graph", "eager", "xla"] if backend.name() == "tensorflow" else ["jit"]

RULES = {"min_length": 3, "no_repeat_ngram_size": 2, "repetition_penalty": 1.4, "prefix": PREFIX}
FORBIDDEN = ((4, 5), (8, 3))
DRAWN = {"seed": 11, "temperature": 0.8, "top_k": 5, "top_p": 0.9}
SEARCHES = {
    "beam": (beam_search, {"beam_size": 4, "n_best": 4}),
    "beam with rules": (
        beam_search,
        {"beam_size": 3, "n_best": 3, "patience": 1.5, "forbidden_sequences": FORBIDDEN, **RULES},
    ),
    "sampling with rules": (sample, {"n_best": 4, **DRAWN, **RULES}),
}


@functools.cache
def model_of(family):
    """A model with random weights, and its numpy version: (source, tokens) to next-token logits."""
    if family == "transformer":
        model = Transformer(VOCABULARY, VOCABULARY, 2, 2, units=8, feedforward_units=8, num_heads=2)
        reference_transformer.randomize(model, seed=26)
        for weight in model.weights:
            # Larger kernels make predictions depend on the source and on all earlier tokens.
            weight.assign(weight * (4 if "kernel" in weight.path else 1))
    else:
        model = RecurrentSeq2Seq(VOCABULARY, VOCABULARY, **RECURRENT)
        reference_recurrent.randomize(model, seed=1, scale=1.0)
    reference = reference_transformer if family == "transformer" else reference_recurrent
    weights = reference.named_arrays(model)

    @functools.cache
    def logits(source, tokens):
        target = np.array([START, *tokens])
        if family == "transformer":
            row = reference.transformer_row(np.array(source), target, weights, 2, "pre")
        else:
            row = reference.recurrent_seq2seq(source, target, weights, RECURRENT)
        return row[-1]

    return model, logits


@functools.cache
def expected(family, name):
    """Results of the plain Python search for each row."""
    search, options = SEARCHES[name]
    found = []
    for row, prefix in zip(SOURCE, PREFIX, strict=True):
        source = tuple(row[row != 0].tolist())
        ruled = "prefix" in options
        rules = Rules(
            least=options.get("min_length", 1),
            ngram=options.get("no_repeat_ngram_size", 0),
            sequences=options.get("forbidden_sequences", ()),
            repetition=options.get("repetition_penalty", 1.0),
            prefix=tuple(prefix[prefix != 0].tolist()) if ruled else (),
        )
        chain = constrained(functools.partial(model_of(family)[1], source), rules)
        if search is sample:
            found.append(plain_samples(chain, source, options["n_best"], LIMIT, **DRAWN))
            continue
        beam_size, patience = options["beam_size"], options.get("patience", 1.0)
        found.append(
            plain_beam_search(chain, beam_size, options["n_best"], LIMIT, patience=patience)
        )
    return found


@functools.cache
def found_by(family, name, way):
    model, _ = model_of(family)
    search, options = SEARCHES[name]

    def function(source):
        return search(model, source, max_length=LIMIT, **options)

    if way == "eager":
        return function(SOURCE)
    if way == "xla":
        import tensorflow as tf

        # XLA compiles for a fixed shape.
        signature = [tf.TensorSpec(SOURCE.shape, tf.int32)]
        return tf.function(function, signature, autograph=False, jit_compile=True)(SOURCE)
    return backend.compiled(function, model.variables, ranks=[2])(SOURCE)


# XLA takes seconds per search. Only the hardest searches, those with rules, run on XLA.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "name"),
    [
        pytest.param(way, name, marks=[pytest.mark.weekly] if way == "xla" else [])
        for way in WAYS
        for name in SEARCHES
        if (way, name) != ("xla", "beam")
    ],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_model_search_equals_plain_python_search(family, name, way):
    result = found_by(family, name, way)
    for row, found in enumerate(expected(family, name)):
        assert_same_results(results_of(result, row), found)


@pytest.mark.parametrize("family", FAMILIES)
def test_models_distinguish_a_right_search_from_a_wrong_one(family):
    """Greedy search is not optimal, not all hypotheses end or are truncated, and samples differ."""
    beams = expected(family, "beam")
    assert len({found[0].tokens for found in beams}) > 1
    assert {one.truncated for found in beams for one in found} == {False, True}
    for name in list(SEARCHES)[1:]:
        assert [row[0].tokens for row in expected(family, name)] != [row[0].tokens for row in beams]
    model, logits = model_of(family)
    greedy = []
    for row in SOURCE:
        chain = constrained(functools.partial(logits, tuple(row[row != 0].tolist())), Rules())
        greedy += plain_beam_search(chain, 1, 1, LIMIT)
    assert any(one.score < found[0].score for one, found in zip(greedy, beams, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "options"),
    [
        (beam_search, {"beam_size": 3, "n_best": 3, "prefix": PREFIX, "min_length": 4}),
        (
            beam_search,
            {"beam_size": 3, "n_best": 2, "length_normalization": "gnmt", "alpha": 0.7}
            | {"no_repeat_ngram_size": 2, "forbidden_sequences": FORBIDDEN},
        ),
        (sample, {"n_best": 3, "length_normalization": "none", "temperature": 2.0, "top_k": 3}),
    ],
    ids=["prefix", "rules", "sampling"],
)
@pytest.mark.parametrize("family", weekly_but(FAMILIES, "transformer"))
def test_search_scores_equal_forced_decoding_scores(family, search, options):
    model, _ = model_of(family)
    result = backend.compiled(
        lambda source: search(model, source, max_length=LIMIT, **options), model.variables, [2]
    )(SOURCE)
    tokens = np.asarray(ops.convert_to_numpy(result.tokens))
    count = tokens.shape[1]
    output = tokens.reshape(len(SOURCE) * count, -1)
    starts = np.full((len(output), 1), START)
    target = np.where(output == 0, 0, np.concatenate([starts, output[:, :-1]], axis=1))
    score_given = quick(lambda *ids: forced_scores(model, *ids))
    forced = score_given(np.repeat(SOURCE, count, axis=0), target, output)
    totals = np.asarray(ops.convert_to_numpy(forced)).sum(axis=1).reshape(-1, count)
    normalization = options.get("length_normalization", "average")
    for row in range(len(SOURCE)):
        found = results_of(result, row)
        assert found
        for total, one in zip(totals[row], found, strict=False):
            score = total / penalty(len(one.tokens), normalization, options.get("alpha", 1.0))
            assert abs(one.score - score) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_batch_mates_and_padding_do_not_change_search_results(family):
    model, _ = model_of(family)
    search = backend.compiled(
        lambda source: beam_search(model, source, beam_size=3, n_best=3, max_length_extra=3),
        model.variables,
        ranks=[2],
    )
    together = search(SOURCE)
    wider = search(np.pad(SOURCE[::-1], [(0, 0), (0, 5)]))
    alone = search(SOURCE[3:, :3])
    for row in range(len(SOURCE)):
        found = results_of(together, row)
        assert_same_results(results_of(wider, len(SOURCE) - 1 - row), found, tolerance=1e-5)
    assert_same_results(results_of(alone, 0), results_of(together, 3), tolerance=1e-5)
