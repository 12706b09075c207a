"""Token error rate, based on the Levenshtein distance."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.metrics.summed import RowRate
from keras_seq.metrics.tokens import PREDICTED_FILL, TRUE_FILL

# Shape letters: B batch, N steps of the truth, M steps of the prediction, V vocabulary.


@keras.saving.register_keras_serializable(package="keras_seq")
class EditDistance(RowRate):
    """Token error rate: edit distance to the truth, divided by the length of the truth.

        rate = sum of w_b Levenshtein(y_b, prediction_b) / sum of w_b |y_b|

    The sums run over all batches, so this is the rate of the corpus rather than a mean over rows.
    It exceeds 1 if predictions are much longer than the truth. A row ends with its first `end_id`,
    which counts as a token. Rows that contain only padding do not count.

    Logits of a training model are computed with teacher forcing, so their rate is lower than that
    of decoded ids. To score translations, pass the ids from a search.

    Shapes: B batch, T steps, M steps of the prediction, V vocabulary.

    Args:
        pad_id, end_id: Ids of padding, 0 by default, and of the end token, 3 by default; None if no
            id is padding, or if rows end only with padding.
        name, dtype: Name of the metric, and dtype of the result.

    Call arguments:
        y_true: Integer ids `(B, T)`.
        y_pred: Float logits `(B, T, V)`, whose Keras mask is respected, or integer ids `(B, M)`.
        sample_weight: Optional weights `(B,)`.

    Returns:
        Float scalar, 0 or more; 0 before the first row.

    Raises:
        ValueError: If a shape does not fit.

    Example:

    >>> metric = EditDistance()
    >>> true = keras.ops.array([[5, 6, 7, 3]])
    >>> float(metric(true, keras.ops.array([[5, 7, 3, 0]])))
    0.25

    Reference:
        Levenshtein, "Binary codes capable of correcting deletions, insertions, and reversals", 1966
    """

    default_name = "edit_distance"

    def row_counts(self, true: Any, true_lengths: Any, ids: Any, lengths: Any) -> tuple[Any, Any]:
        return levenshtein(true, true_lengths, ids, lengths), true_lengths


def levenshtein(true: Any, true_lengths: Any, ids: Any, lengths: Any) -> Any:
    """Returns the edit distance of each pair of rows, int32 `(B,)`.

    The table of distances is filled along its antidiagonals, whose cells are independent of each
    other. Cell i of antidiagonal k is the distance between the first i true tokens and the first k
    - i predicted tokens. Ids are int32 `(B, N)` and `(B, M)`, lengths `(B,)`.
    """
    # Column i is the i-th token, counted from 1.
    true = ops.pad(true, [[0, 0], [1, 0]], constant_values=TRUE_FILL)
    ids = ops.pad(ids, [[0, 0], [1, 0]], constant_values=PREDICTED_FILL)
    cells = ops.cumsum(ops.ones_like(true), axis=1) - 1  # (B, N + 1)
    last_id = backend.shape(ids)[1] - 1
    lasts = true_lengths + lengths

    def shifted(diagonal: Any) -> Any:
        return ops.pad(diagonal[:, :-1], [[0, 0], [1, 0]])

    def fill_next(k: Any, two_before: Any, one_before: Any, distances: Any) -> tuple[Any, ...]:
        others = ops.take_along_axis(ids, ops.clip(k - cells, 0, last_id), axis=1)
        replaced = shifted(two_before) + ops.cast(ops.not_equal(true, others), "int32")
        skipped = ops.minimum(one_before, shifted(one_before)) + 1
        diagonal = ops.minimum(replaced, skipped)
        # At the borders of the table, one of the rows is empty. Cells outside are not read.
        border = ops.logical_or(ops.equal(cells, 0), cells >= k)
        diagonal = ops.where(border, k, diagonal)
        at_end = ops.take_along_axis(diagonal, true_lengths[:, None], axis=1)[:, 0]
        return k + 1, one_before, diagonal, ops.where(ops.equal(lasts, k), at_end, distances)

    zeros = ops.zeros_like(true)
    start = (ops.ones((), "int32"), zeros, zeros, ops.zeros_like(true_lengths))
    last = ops.max(lasts, initial=0)
    return ops.while_loop(lambda k, *_: k <= last, fill_next, start)[-1]
