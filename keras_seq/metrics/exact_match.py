"""Fraction of rows without an error."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.metrics.summed import RowRate


@keras.saving.register_keras_serializable(package="keras_seq")
class ExactMatch(RowRate):
    """Fraction of the rows whose tokens are all right, including the end token.

        exact match = sum of w_b [prediction_b = y_b] / sum of w_b

    Use it for short targets that are either right or wrong, such as inflections. A row ends with
    its first `end_id`; later tokens are ignored. Rows that contain only padding do not count.
    Logits of a training model are computed with teacher forcing, so their exact match is at least
    that of decoded ids. To score translations, pass the ids from a search.

    Shapes: B batch, T steps, M steps of the prediction, V vocabulary.

    Args:
        pad_id, end_id, name, dtype: As for `EditDistance`.

    Call arguments:
        y_true: Integer ids `(B, T)`.
        y_pred: Integer ids `(B, M)`, or float logits `(B, T, V)`, whose Keras mask is respected.
        sample_weight: Optional weights `(B,)` of the rows.

    Returns:
        Float scalar in [0, 1]; 0 before the first row.

    Raises:
        ValueError: If a shape does not fit.

    Example:

    >>> metric = ExactMatch()
    >>> true = keras.ops.array([[5, 6, 3, 0], [7, 3, 0, 0]])
    >>> float(metric(true, keras.ops.array([[5, 6, 3, 9], [7, 8, 3, 0]])))
    0.5
    """

    default_name = "exact_match"

    def row_counts(self, true: Any, true_lengths: Any, ids: Any, lengths: Any) -> tuple[Any, Any]:
        # Pad truth and prediction to equal widths.
        padded = ops.pad(true, [[0, 0], [0, backend.shape(ids)[1]]], constant_values=0)
        ids = ops.pad(ids, [[0, 0], [0, backend.shape(true)[1]]], constant_values=0)
        steps = ops.cumsum(ops.ones_like(ids), axis=1) - 1
        same = ops.logical_or(ops.equal(padded, ids), steps >= true_lengths[:, None])
        right = ops.logical_and(ops.all(same, axis=1), ops.equal(true_lengths, lengths))
        return right, ops.ones_like(lengths)
