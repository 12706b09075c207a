"""The CTC loss against an explicit sum over all alignments in float64 numpy."""

import itertools
import json

import keras
import numpy as np
import pytest
from differentiation import gradients, quick
from keras import ops

from keras_seq.losses import CTCLoss, ctc_needed_frames
from keras_seq.losses.ctc_loss import ctc_losses

pytestmark = [pytest.mark.jax, pytest.mark.torch]

FRAMES, VOCABULARY = 5, 4
# Labels and their numbers of real frames. Equal neighbors need a blank between them.
POSSIBLE = [([1, 2], 5), ([1, 1], 5), ([1, 1, 1], 5), ([1, 1, 2], 4), ([], 3), ([3], 1), ([2], 2)]
IMPOSSIBLE = [([1, 2, 3], 2), ([1, 1], 2), ([2, 2, 2, 2], 5), ([1], 0), ([], 0)]
CASES = POSSIBLE + IMPOSSIBLE
LABELS = np.array([row + [0] * (4 - len(row)) for row, _ in CASES], "int32")
MASK = np.arange(FRAMES) < np.array([[frames] for _, frames in CASES])
LOGITS = 2 * np.random.default_rng(0).normal(size=(len(CASES), FRAMES, VOCABULARY))
LOGITS = LOGITS.astype("float32")
COUNTS = np.array([True] * len(POSSIBLE) + [False] * len(IMPOSSIBLE))


def over_all_alignments(labels, logits):
    """Negative log of the summed probability of all paths that collapse to the labels."""
    exponentials = np.exp(logits.astype("float64"))
    probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
    total = 0.0
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        said = [label for label, _ in itertools.groupby(path) if label]
        if said == labels:
            total += np.prod(probabilities[np.arange(len(path)), path])
    return -np.log(total)


EXPECTED = [
    over_all_alignments(labels, LOGITS[row, :frames])
    for row, (labels, frames) in enumerate(POSSIBLE)
] + [0.0] * len(IMPOSSIBLE)


compiled = quick(ctc_losses)


def losses(logits=LOGITS, labels=LABELS, mask=MASK):
    found, counts = compiled(*map(ops.convert_to_tensor, (labels, logits, mask)))
    return ops.convert_to_numpy(found), ops.convert_to_numpy(counts)


def said_blank(logits=LOGITS):
    """The logits as `layers.CTCLogits` returns them: padding predicts the blank."""
    return np.where(MASK[..., None], logits, [0.0, -1e9, -1e9, -1e9]).astype("float32")


def test_ctc_loss_equals_the_sum_over_all_alignments():
    found, counts = losses()
    np.testing.assert_allclose(found, EXPECTED, rtol=1e-5)
    np.testing.assert_array_equal(counts, COUNTS)


def test_ctc_loss_equals_keras_on_rows_that_can_be_aligned():
    lengths = np.array([[len(row), frames] for row, frames in POSSIBLE], "int32").T
    rows = len(POSSIBLE)
    theirs = quick(ops.ctc_loss)(LABELS[:rows], LOGITS[:rows], *lengths)
    np.testing.assert_allclose(losses()[0][:rows], theirs, rtol=1e-5)


def test_ctc_loss_gradient_equals_finite_differences():
    (found,), _ = gradients(lambda logits: ops.sum(ctc_losses(LABELS, logits, MASK)[0]), [LOGITS])
    numeric = np.zeros(LOGITS.shape)
    for row, (labels, frames) in enumerate(POSSIBLE):
        for place in np.ndindex(frames, VOCABULARY):
            nearby = LOGITS[[row, row], :frames].astype("float64")
            nearby[(0, *place)] += 1e-5
            nearby[(1, *place)] -= 1e-5
            above, below = (over_all_alignments(labels, logits) for logits in nearby)
            numeric[(row, *place)] = (above - below) / 2e-5
    np.testing.assert_allclose(found, numeric, atol=1e-5)
    # Rows without an alignment and padding frames have a gradient of 0.
    assert not found[~COUNTS].any() and not found[~MASK].any()


def test_nan_in_padding_keeps_the_loss_equal_and_the_gradient_finite():
    spoiled = np.where(MASK[..., None], LOGITS, np.nan).astype("float32")
    np.testing.assert_array_equal(losses(spoiled)[0], losses()[0])
    (found,), _ = gradients(lambda logits: ops.sum(ctc_losses(LABELS, logits, MASK)[0]), [spoiled])
    assert np.isfinite(found).all()


def test_nan_in_a_real_frame_makes_the_loss_of_its_row_nan():
    spoiled = LOGITS.copy()
    spoiled[0, 1] = np.nan
    found, counts = losses(spoiled)
    assert np.isnan(found[0]) and counts[0]
    np.testing.assert_array_equal(found[1:], losses()[0][1:])
    # The same holds if all frames are NaN.
    found, counts = losses(np.full_like(LOGITS, np.nan))
    assert np.isnan(found[counts]).all() and counts.sum() == len(POSSIBLE)


def test_ctc_loss_is_independent_of_padding_and_other_rows():
    expected = losses()[0]
    more = np.pad(LOGITS, [[0, 0], [0, 3], [0, 0]], constant_values=7.0)
    mask, labels = np.pad(MASK, [[0, 0], [0, 3]]), np.pad(LABELS, [[0, 0], [0, 2]])
    np.testing.assert_allclose(losses(more, labels, mask)[0], expected, rtol=1e-5)
    # Frames masked at the start are padding, too.
    before = [np.roll(array, 3, axis=1) for array in (more, mask)]
    np.testing.assert_allclose(losses(before[0], labels, before[1])[0], expected, rtol=1e-5)
    for row in (0, 3):
        alone = losses(*(array[row : row + 1] for array in (LOGITS, LABELS, MASK)))[0]
        np.testing.assert_allclose(alone, expected[row : row + 1], rtol=1e-6)


def test_ctc_loss_reduces_only_over_rows_that_can_be_aligned():
    weights = np.random.default_rng(1).uniform(0.1, 2, len(CASES)).astype("float32")
    mean, total = CTCLoss(), CTCLoss(reduction="sum")

    def compute(logits):
        return [
            mean(LABELS, logits),
            mean(LABELS, logits, weights),
            total(LABELS, logits),
            total(LABELS, logits, weights[:, None]),
            # Keras passes labels as floats.
            mean(LABELS.astype("float32"), logits),
            # The loss is 0 if no row counts.
            mean(LABELS, logits, np.where(COUNTS, 0, weights)),
        ]

    expected = np.array(EXPECTED)[COUNTS]
    weighted, whole = weights[COUNTS] @ expected, weights[COUNTS].sum()
    found = [float(value) for value in quick(compute)(ops.convert_to_tensor(said_blank()))]
    assert found == pytest.approx(
        [expected.mean(), weighted / whole, expected.sum(), weighted, expected.mean(), 0], rel=1e-5
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_ctc_loss_is_computed_in_at_least_float32(dtype):
    if dtype == "float64" and keras.backend.backend() == "jax":
        pytest.skip("JAX makes float32 of it")
    rounded = ops.convert_to_numpy(ops.cast(ops.cast(LOGITS, dtype), "float32"))
    found, _ = compiled(LABELS, ops.cast(LOGITS, dtype), MASK)
    assert keras.backend.standardize_dtype(found.dtype) == (
        "float64" if dtype == "float64" else "float32"
    )
    np.testing.assert_allclose(ops.convert_to_numpy(found), losses(rounded)[0], rtol=1e-5)


@pytest.mark.slow
def test_ctc_loss_of_a_long_input_neither_underflows_nor_overflows():
    # One label in a thousand frames, each of which strongly predicts another label.
    logits = np.zeros((1, 1000, 3), "float32")
    logits[..., 2] = 50
    found, counts = losses(logits, np.array([[1]], "int32"), np.ones((1, 1000), bool))
    # The label covers any of the 1000 * 1001 / 2 ranges of consecutive frames. All of them are
    # equally likely, because blank and label have the same probability.
    assert counts.all()
    np.testing.assert_allclose(found, 1000 * 50 - np.log(1000 * 1001 / 2), rtol=1e-5)


@pytest.mark.slow
def test_model_trained_with_ctc_loss_learns_its_labels():
    generator = np.random.default_rng(0)
    labels = generator.integers(1, 4, (64, 3))
    # Each label lasts two frames, followed by a silent frame.
    heard = np.stack([labels, labels, 0 * labels], axis=2).reshape(64, 9)
    inputs = keras.Input((None,), dtype="int32")
    outputs = keras.layers.Dense(4)(keras.layers.Embedding(4, 8)(inputs))
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.Adam(0.05), CTCLoss())
    history = model.fit(heard, labels, batch_size=32, epochs=40, verbose=0).history["loss"]
    assert history[-1] < 0.1 < history[0]


def test_ctc_needed_frames_counts_labels_and_blanks_between_repeats():
    rows = [[1, 2, 3], [1, 1, 1], [2, 2, 0], [0, 0, 0], [3, 0, 0]]
    assert [int(n) for n in ctc_needed_frames(np.array(rows))] == [3, 5, 3, 0, 1]


def test_ctc_loss_round_trips_through_its_config():
    loss = CTCLoss(reduction="sum", name="other")
    config = json.loads(json.dumps(keras.losses.serialize(loss)))
    again = keras.losses.deserialize(config)
    assert (type(again), again.reduction, again.name) == (CTCLoss, "sum", "other")


def test_ctc_loss_rejects_a_wrong_reduction_and_wrong_shapes():
    with pytest.raises(ValueError, match="`reduction` must be .* received 'mean'"):
        CTCLoss(reduction="mean")
    with pytest.raises(ValueError, match=r"labels of shape .* received \(12, 4\) and \(12, 5\)"):
        ctc_losses(LABELS, LOGITS[..., 0])
