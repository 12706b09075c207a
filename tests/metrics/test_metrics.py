"""Each metric against plain loops, sacreBLEU or `keras_seq.scoring`, and common properties.

On JAX, where eager operations are slow, the tests marked `jax` run.
"""

import json

import keras
import numpy as np
import pytest
import sacrebleu
from keras import ops
from metrics.cases import CASES, END, VOCABULARY, levenshtein, make_batch

from keras_seq import metrics, scoring

WEIGHTS = np.array([1, 2, 0, 1, 3, 0, 1, 1], "float32")
every_metric = pytest.mark.parametrize("name", CASES)


def updated(metric, *batches):
    for batch in batches:
        metric.update_state(*batch)
    return float(metric.result())


def as_ids(logits, seed=1):
    """Decoded ids that differ in length from the targets, with random ids after their ends."""
    ids = logits.argmax(-1).astype("int32")
    if logits.shape[-1] != VOCABULARY:
        return ids
    random = np.random.default_rng(seed)
    ids[::3] = np.roll(ids[::3], 1, axis=1)
    ids = np.concatenate([ids, random.integers(4, VOCABULARY, (len(ids), 3))], axis=1)
    ids[1, 4:] = 0
    return ids.astype("int32")


@pytest.mark.jax
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("seed", range(2))
@every_metric
def test_metric_equals_the_truth(name, seed, weights):
    make, truth, batch, takes_ids = CASES[name]
    true, logits = batch(seed)
    found = updated(make(), (true, logits, weights))
    expected = truth(true, logits, weights)
    assert 0 < expected
    np.testing.assert_allclose(found, expected, rtol=2e-6)
    if takes_ids:
        ids = as_ids(logits)
        found = updated(make(), (true, ids, weights))
        np.testing.assert_allclose(found, truth(true, ids, weights), rtol=2e-6)


@every_metric
def test_neither_splits_nor_the_order_of_rows_change_the_result(name):
    make, _, batch, _ = CASES[name]
    true, logits = batch()
    at_once = updated(make(), (true, logits, WEIGHTS))
    order = np.random.default_rng(0).permutation(len(true))
    batches = [(true[rows], logits[rows], WEIGHTS[rows]) for rows in np.split(order, [1, 2, 6])]
    np.testing.assert_allclose(updated(make(), *batches), at_once, rtol=1e-6)


@pytest.mark.jax
@every_metric
def test_padding_and_what_stands_there_do_not_change_the_result(name):
    make, _, batch, takes_ids = CASES[name]
    true, logits = batch()
    expected = updated(make(), (true, logits))
    pad = -1 if name == "entity_f1" else 0
    wider = np.pad(true, [(0, 2), (0, 3)], constant_values=pad)
    spoiled = np.pad(logits, [(0, 2), (0, 3), (0, 0)])
    spoiled[wider == pad] = np.nan
    np.testing.assert_allclose(updated(make(), (wider, spoiled)), expected, rtol=1e-6)
    if takes_ids and name != "entity_f1":
        ids = as_ids(logits)
        expected = updated(make(), (true, ids))
        more = np.pad(ids, [(0, 2), (0, 4)])
        more[len(ids) :] = 5
        np.testing.assert_allclose(updated(make(), (wider, more)), expected, rtol=1e-6)


@every_metric
def test_a_weight_of_zero_removes_a_row(name):
    make, _, batch, _ = CASES[name]
    true, logits = batch()
    kept = np.array([1, 0, 1, 1, 0, 1, 1, 1], "float32")
    expected = updated(make(), (true[kept > 0], logits[kept > 0]))
    logits[kept == 0] = np.nan if name == "perplexity" else -logits[kept == 0]
    np.testing.assert_allclose(updated(make(), (true, logits, kept)), expected, rtol=1e-6)
    column = kept[:, None]
    np.testing.assert_allclose(updated(make(), (true, logits, column)), expected, rtol=1e-6)


@every_metric
def test_reset_forgets_all_batches(name):
    make, _, batch, _ = CASES[name]
    metric = make()
    at_first = float(metric.result())
    assert at_first == (1.0 if name == "perplexity" else 0.0)
    expected = updated(make(), batch(1))
    updated(metric, batch(0))
    metric.reset_state()
    assert float(metric.result()) == at_first
    assert updated(metric, batch(1)) == expected


@every_metric
def test_metric_round_trips_through_its_config(name):
    make, _, batch, _ = CASES[name]
    metric = make(name="mine")
    again = keras.metrics.deserialize(json.loads(json.dumps(keras.metrics.serialize(metric))))
    assert type(again) is type(metric)
    assert again.name == "mine"
    assert again.get_config() == metric.get_config()
    assert updated(again, batch()) == updated(metric, batch())


@every_metric
def test_sums_are_exact_in_half_precision(name):
    make, truth, batch, _ = CASES[name]
    true, logits = batch()
    metric = make(dtype="bfloat16")
    found = updated(metric, *[(true, logits)] * 3)
    np.testing.assert_allclose(found, truth(true, logits, None), rtol=4e-3)
    assert all(variable.dtype == "float32" for variable in metric.variables)


@pytest.mark.parametrize("make", [metrics.MaskedTokenAccuracy, metrics.Perplexity])
def test_weights_of_tokens_count_each_token(make):
    true, logits = make_batch()
    kept = np.random.default_rng(0).random(true.shape) < 0.5
    expected = updated(make(), (np.where(kept, true, 0), logits))
    found = updated(make(), (true, logits, kept.astype("float32")))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.jax
@pytest.mark.parametrize("name", ["accuracy", "perplexity", "exact_match", "edit_distance", "bleu"])
def test_the_mask_of_the_logits_is_respected(name):
    make, _, batch, _ = CASES[name]
    true, logits = batch()
    expected = updated(make(), (true, logits))
    # Padding has the id 7, and a mask marks it.
    filled = np.where(true == 0, 7, true)
    masked = keras.layers.Masking(mask_value=np.inf)(
        ops.convert_to_tensor(np.where((true == 0)[..., None], np.inf, logits))
    )
    found = updated(make(pad_id=None), (filled, masked))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_row_ends_with_its_first_end_token():
    true = np.array([[5, END, 6, END, 0]], "int32")
    for ids, right, errors in (
        ([5, END, 0, 0], 1.0, 0),
        ([5, END, 7, 7], 1.0, 0),
        ([5, 0, 0, 0], 0.0, 1),
        ([END, 0, 0, 0], 0.0, 1),
        ([5, 6, END, 0], 0.0, 1),
        ([0, 0, 0, 0], 0.0, 2),
    ):
        batch = (true, np.array([ids], "int32"))
        assert updated(metrics.ExactMatch(), batch) == right, ids
        assert updated(metrics.EditDistance(), batch) == errors / 2, ids
    # Without an end token all four tokens count.
    ids = np.array([[5, END, 6, 4]], "int32")
    assert updated(metrics.EditDistance(end_id=None), (true, ids)) == 0.25
    assert updated(metrics.ExactMatch(end_id=None), (true, true)) == 1.0


@pytest.mark.parametrize("seed", range(20))
def test_edit_distance_equals_the_recursion_on_random_rows(seed):
    random = np.random.default_rng(seed)
    true = random.integers(4, 7, (5, random.integers(1, 9)))
    ids = random.integers(4, 7, (5, random.integers(1, 9)))
    ids[random.random(ids.shape) < 0.1] = 0
    distances = [
        levenshtein(row.tolist(), other[other != 0].tolist())
        for row, other in zip(true, ids, strict=True)
    ]
    found = updated(metrics.EditDistance(), (true, ids))
    np.testing.assert_allclose(found, sum(distances) / true.size, rtol=1e-6)


@pytest.mark.parametrize("length", range(1, 8))
def test_bleu_of_short_rows_is_smoothed_as_sacrebleu_does(length):
    random = np.random.default_rng(length)
    true = random.integers(4, 7, (3, length))
    ids = random.integers(4, 7, (3, length))
    sides = [[" ".join(map(str, row)) for row in side] for side in (ids, true)]
    expected = sacrebleu.BLEU(tokenize="none").corpus_score(sides[0], [sides[1]]).score
    found = updated(metrics.BLEU(), (true, ids))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


TRUTHS = ["A dog runs, fast.", "the cat sat on the mat", "", "x"]
PREDICTIONS = ["A dog ran, fast.", "the the cat sat on mat", "no", ""]


@pytest.mark.jax
def test_texts_equal_sacrebleu():
    for metric, expected in (
        (metrics.BLEU(), scoring.bleu(PREDICTIONS, [TRUTHS]).value),
        (
            metrics.BLEU(tokenize="char"),
            sacrebleu.BLEU(tokenize="char").corpus_score(PREDICTIONS, [TRUTHS]).score,
        ),
        (metrics.ChrF(), sacrebleu.CHRF().corpus_score(PREDICTIONS, [TRUTHS]).score),
    ):
        assert expected > 0
        np.testing.assert_allclose(updated(metric, (TRUTHS, PREDICTIONS)), expected, rtol=1e-6)
        metric.reset_state()
        halves = ((TRUTHS[:2], PREDICTIONS[:2]), (np.array(TRUTHS[2:]), PREDICTIONS[2:]))
        np.testing.assert_allclose(updated(metric, *halves), expected, rtol=1e-6)
        metric.reset_state()
        weighted = (TRUTHS + ["other"], PREDICTIONS + ["words"], [1, 1, 1, 1, 0])
        np.testing.assert_allclose(updated(metric, weighted), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "true", "predicted", "weights", "message"),
    [
        ("accuracy", (2, 3), (2, 3), None, r"must be logits .*received shape \(2, 3\)"),
        ("perplexity", (2, 3), (2, 4, 5), None, "equally many steps, received 3 and 4"),
        ("exact_match", (2,), (2, 3), None, r"`y_true` must be integer ids .* shape \(2,\)"),
        ("edit_distance", (2, 3), (2, 3), (2, 3), r"one weight per row, .* shape \(2, 3\)"),
        ("bleu", (2, 3), (2,), None, r"logits .* or integer ids .* int32 of shape \(2,\)"),
        ("entity_f1", (2, 3), (2, 4, 7), None, "equally many steps, received 3 and 4"),
    ],
)
def test_wrong_shapes_are_refused(name, true, predicted, weights, message):
    arrays = [np.ones(true, "int32"), np.ones(predicted, "int32")]
    with pytest.raises(ValueError, match=message):
        CASES[name][0]().update_state(*arrays, weights and np.ones(weights, "float32"))


def test_floats_as_ids_are_refused():
    with pytest.raises(ValueError, match="integer ids of shape .* received float32"):
        metrics.ExactMatch().update_state(np.ones((2, 3), "int32"), np.ones((2, 3), "float32"))


def test_unknown_tags_and_wrong_texts_are_refused():
    with pytest.raises(ValueError, match="'NOUN' is not an entity tag"):
        metrics.EntityF1(["O", "NOUN"])
    with pytest.raises(TypeError, match="`decode`"):
        metrics.ChrF().update_state(np.ones((2, 3), "int32"), np.ones((2, 3), "int32"))
    for metric in (metrics.BLEU(), metrics.ChrF()):
        with pytest.raises(TypeError, match="both be lists of strings"):
            metric.update_state(["a"], np.ones((1, 3), "int32"))
        with pytest.raises(TypeError, match="lists of strings, received 'a'"):
            metric.update_state("a", "a")
        with pytest.raises(ValueError, match="as many lines, received 1, 2 and 1"):
            metric.update_state(["a"], ["a", "b"])
