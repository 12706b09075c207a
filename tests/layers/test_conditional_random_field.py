"""Sums and maxima over all tag sequences, against enumerating the sequences."""

import itertools

import differentiation
import keras
import numpy as np
import pytest
from keras import ops

from keras_seq.layers import ConditionalRandomField

pytestmark = [pytest.mark.jax, pytest.mark.torch]

STEPS, TAGS = 5, 3
# Rows without padding, with padding, with gaps, with padding on the left, and without a real step.
MASK = np.array(
    [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 1, 0, 1], [0, 0, 1, 1, 1], [0, 0, 0, 0, 0]], "bool"
)
GENERATOR = np.random.default_rng(4)
POTENTIALS = GENERATOR.normal(0, 2, size=(5, STEPS, TAGS)).astype("float32")
TRUE_TAGS = GENERATOR.integers(0, TAGS, size=(5, STEPS)).astype("int32")


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def made(use_boundary=True):
    layer = ConditionalRandomField(use_boundary)
    layer.build((None, None, TAGS))
    for index, weight in enumerate(layer.weights):
        weight.assign(np.random.default_rng([2, index]).normal(size=weight.shape))
    return layer


def all_scores(layer, row):
    """Returns all tag sequences of the real steps of a row with their scores, in float64."""
    transitions, *boundaries = (numpy_of(weight).astype("float64") for weight in layer.weights)
    start, end = boundaries or np.zeros((2, TAGS))
    potentials = POTENTIALS[row, MASK[row]].astype("float64")
    sequences = list(itertools.product(range(TAGS), repeat=len(potentials)))
    scores = [
        start[tags[0]]
        + end[tags[-1]]
        + sum(potential[tag] for potential, tag in zip(potentials, tags, strict=True))
        + sum(transitions[pair] for pair in itertools.pairwise(tags))
        for tags in sequences
    ]
    return np.array(sequences), np.array(scores)


def log_sum(scores):
    return scores.max() + np.log(np.exp(scores - scores.max()).sum())


@pytest.fixture(params=[True, False], ids=["boundary", "plain"])
def layer(request):
    return made(request.param)


REAL_ROWS = range(4)


def test_partition_is_the_sum_over_all_sequences(layer):
    got = numpy_of(layer.log_partition(POTENTIALS, MASK))
    expected = [log_sum(all_scores(layer, row)[1]) for row in REAL_ROWS]
    np.testing.assert_allclose(got, [*expected, 0], atol=1e-5)


def test_log_likelihood_is_the_normalized_score_of_the_tags(layer):
    got = numpy_of(layer.log_likelihood(POTENTIALS, TRUE_TAGS, MASK))
    for row in REAL_ROWS:
        sequences, scores = all_scores(layer, row)
        (index,) = np.flatnonzero((sequences == TRUE_TAGS[row, MASK[row]]).all(axis=1))
        np.testing.assert_allclose(got[row], scores[index] - log_sum(scores), atol=1e-5)
    assert got[4] == 0


def test_log_likelihood_of_allowed_tags_sums_over_allowed_sequences(layer):
    allowed = np.random.default_rng(5).random((5, STEPS, TAGS)) < 0.6
    allowed[..., 0] |= ~allowed.any(axis=-1)
    got = numpy_of(layer.log_likelihood(POTENTIALS, allowed, MASK))
    for row in REAL_ROWS:
        sequences, scores = all_scores(layer, row)
        real = allowed[row, MASK[row]]
        kept = [all(real[np.arange(len(tags)), tags]) for tags in sequences]
        np.testing.assert_allclose(got[row], log_sum(scores[kept]) - log_sum(scores), atol=1e-5)


def test_crf_decodes_the_highest_scoring_sequence(layer):
    got = numpy_of(layer(POTENTIALS, inputs_mask=MASK))
    assert got.dtype == np.int32
    for row in REAL_ROWS:
        sequences, scores = all_scores(layer, row)
        np.testing.assert_array_equal(got[row, MASK[row]], sequences[scores.argmax()])
    assert (got[~MASK] == 0).all()


def test_marginals_equal_enumeration_and_the_gradient_of_the_partition(layer):
    got = numpy_of(layer.marginals(POTENTIALS, MASK))
    for row in REAL_ROWS:
        sequences, scores = all_scores(layer, row)
        shares = np.exp(scores - log_sum(scores))
        expected = [
            [shares[sequences[:, step] == tag].sum() for tag in range(TAGS)]
            for step in range(sequences.shape[1])
        ]
        np.testing.assert_allclose(got[row, MASK[row]], expected, atol=1e-5)
    (gradient,), _ = differentiation.gradients(
        lambda potentials: ops.sum(layer.log_partition(potentials, MASK)), [POTENTIALS]
    )
    np.testing.assert_allclose(got, gradient, atol=1e-5)


def test_without_transitions_each_step_stands_alone():
    layer = made(use_boundary=False)
    layer.transitions.assign(np.zeros((TAGS, TAGS)))
    log_softmax = numpy_of(ops.log_softmax(POTENTIALS))
    expected = np.take_along_axis(log_softmax, TRUE_TAGS[..., None], axis=-1).sum(axis=(1, 2))
    got = numpy_of(layer.log_likelihood(POTENTIALS, TRUE_TAGS))
    np.testing.assert_allclose(got, expected, atol=1e-5)
    np.testing.assert_array_equal(numpy_of(layer(POTENTIALS)), POTENTIALS.argmax(axis=-1))


def test_forbidden_transitions_are_never_taken():
    layer = made(use_boundary=False)
    transitions = numpy_of(layer.transitions).copy()
    np.fill_diagonal(transitions, -1e4)
    layer.transitions.assign(transitions)
    tags = numpy_of(layer(POTENTIALS))
    assert (tags[:, 1:] != tags[:, :-1]).all()
    assert np.isfinite(numpy_of(layer.log_partition(POTENTIALS, MASK))).all()


@pytest.mark.parametrize("steps", [1, 200])
def test_log_partition_is_accurate_for_1_and_200_steps(steps):
    layer = made()
    potentials = np.random.default_rng(1).normal(0, 3, (1, steps, TAGS)).astype("float32")
    transitions, start, end = (numpy_of(weight).astype("float64") for weight in layer.weights)
    scores = start + potentials[0, 0]
    for potential in potentials[0, 1:].astype("float64"):
        pairs = scores[:, None] + transitions
        scores = pairs.max(axis=0) + np.log(np.exp(pairs - pairs.max(axis=0)).sum(axis=0))
        scores = scores + potential
    expected = log_sum(scores + end)
    got = numpy_of(layer.log_partition(potentials))
    np.testing.assert_allclose(got[0], expected, rtol=1e-5)


def test_given_tags_add_their_negative_log_likelihood_to_the_losses():
    layer = made()
    decoded, likelihood = layer(POTENTIALS, TRUE_TAGS, inputs_mask=MASK)
    np.testing.assert_array_equal(numpy_of(decoded), numpy_of(layer(POTENTIALS, inputs_mask=MASK)))
    layer(POTENTIALS, TRUE_TAGS, inputs_mask=MASK)
    (loss,) = layer.losses
    np.testing.assert_allclose(numpy_of(loss), -numpy_of(likelihood).mean(), rtol=1e-6)


@pytest.mark.slow
def test_a_tagger_learns_that_tags_alternate():
    """The words carry no information, so the tagger needs the start scores and the transitions."""
    keras.utils.set_random_seed(1)
    words, tags = keras.Input((None,), dtype="int32"), keras.Input((None,), dtype="int32")
    potentials = keras.layers.Dense(2)(keras.layers.Embedding(3, 2, mask_zero=True)(words))
    field = ConditionalRandomField()
    decoded, _ = field(potentials, tags)
    model = keras.Model([words, tags], decoded)
    model.compile(keras.optimizers.Adam(0.3))
    ids = np.ones((8, 6), "int32")
    ids[:4, 4:] = 0
    expected = np.tile([0, 1], (8, 3)).astype("int32") * (ids != 0)
    model.fit([ids, expected], epochs=15, verbose=0)
    np.testing.assert_array_equal(numpy_of(model([ids, np.zeros_like(ids)])), expected)


def test_crf_partition_in_half_precision_sums_in_float32():
    layer = ConditionalRandomField(dtype="mixed_bfloat16")
    layer.build((None, None, TAGS))
    halves = ops.cast(POTENTIALS, "bfloat16")
    partition = layer.log_partition(halves, MASK)
    assert keras.backend.standardize_dtype(partition.dtype) == "float32"
    exact = ConditionalRandomField()
    exact.build((None, None, TAGS))
    exact.transitions.assign(layer.transitions)
    expected = exact.log_partition(numpy_of(ops.cast(halves, "float32")), MASK)
    np.testing.assert_allclose(numpy_of(partition), numpy_of(expected), rtol=1e-6)


def test_invalid_crf_inputs_raise_value_error():
    with pytest.raises(ValueError, match=r"\(batch, steps, tags\), .* shape \(5, 3\)"):
        ConditionalRandomField()(POTENTIALS[:, 0])
    with pytest.raises(ValueError, match=r"must have 3 features, .* shape \(5, 5, 4\)"):
        made()(np.ones((5, STEPS, 4), "float32"))
    with pytest.raises(ValueError, match=r"`mask` must .* received \(5, 4\)"):
        made()(POTENTIALS, inputs_mask=MASK[:, :4])
    with pytest.raises(ValueError, match=r"The tags must .* received int32 of shape \(5, 2\)"):
        made()(POTENTIALS, TRUE_TAGS[:, :2])
    with pytest.raises(ValueError, match=r"The tags must .* received float32 of shape \(5, 5\)"):
        made().log_likelihood(POTENTIALS, TRUE_TAGS.astype("float32"))
