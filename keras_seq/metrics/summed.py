"""Base classes of the metrics. The state variables of a metric are sums over rows."""

from typing import Any

import keras
from keras import ops

from keras_seq.metrics.tokens import (
    PREDICTED_FILL,
    TRUE_FILL,
    as_ids,
    as_logits,
    predicted_ids,
    real_tokens,
    row_weights,
    rows_of,
    token_weights,
)

# Shape letters: B batch, T steps, N steps of the truth, M steps of the prediction, V vocabulary.


class SummedMetric(keras.metrics.Metric):
    """Abstract metric whose state is a set of sums, so batches can be split and ordered freely.

    Sums use float32 or more, whatever the dtype of the result.
    """

    default_name: str
    # Names of scalar sums, which become attributes.
    sums: tuple[str, ...] = ()

    def __init__(self, pad_id: int | None = 0, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name=name or self.default_name, dtype=dtype)
        self.pad_id = pad_id
        for sum_name in self.sums:
            setattr(self, sum_name, self.add_sum(sum_name))

    def add_sum(self, name: str, shape: tuple[int, ...] = ()) -> keras.Variable:
        """Adds a state variable of zeros."""
        # A sum in half precision stops growing at a few thousand.
        dtype = keras.backend.result_type(self.dtype, "float32")
        return self.add_variable(shape, "zeros", dtype=dtype, name=name)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "pad_id": self.pad_id}


class TokenMean(SummedMetric):
    """Abstract metric: a function of the weighted mean of a value over all real tokens."""

    sums = ("count", "total")

    def token_values(self, y_true: Any, y_pred: Any, real: Any) -> Any:
        """Returns a value per token, `(B, T)`. Values where `real` is False are ignored."""
        raise NotImplementedError

    def of_mean(self, mean: Any) -> Any:
        """Converts the mean value to the result. By default, the result is the mean."""
        return mean

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        y_true = as_ids("y_true", y_true)
        y_pred = as_logits(y_true, y_pred)
        real = real_tokens(y_true, y_pred, self.pad_id)
        weights = token_weights(real, sample_weight)
        values = ops.cast(self.token_values(y_true, y_pred, real), self.total.dtype)
        # Select instead of multiply, because 0 times infinity is NaN.
        values = ops.where(ops.equal(weights, 0), 0.0, values * ops.cast(weights, values.dtype))
        add(self.count, ops.sum(values))
        add(self.total, ops.sum(weights))

    def result(self) -> Any:
        return ops.cast(self.of_mean(ratio(self.count, self.total)), self.dtype)


class RowMetric(SummedMetric):
    """Abstract metric of rows that end at `end_id`, or only at padding if `end_id` is None."""

    def __init__(
        self,
        pad_id: int | None = 0,
        end_id: int | None = 3,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(pad_id, name, dtype)
        self.end_id = end_id

    def rows(self, y_true: Any, y_pred: Any, sample_weight: Any, keep_end: bool) -> tuple[Any, ...]:
        """Returns truth and prediction as rows of tokens.

        Predicted logits `(B, N, V)` have the same real steps as the truth. In predicted ids
        `(B, M)`, all steps other than padding are real. Each row ends at its first end token, which
        belongs to the row if `keep_end` is True.

        Returns true ids `(B, N)`, filled up with `TRUE_FILL`, and lengths `(B,)`; predicted ids,
        filled up with `PREDICTED_FILL`, and lengths; weights `(B,)` as from `row_weights`.
        """
        y_true = as_ids("y_true", y_true)
        y_pred, ids = predicted_ids(y_true, y_pred)
        real = real_tokens(y_true, y_pred, self.pad_id)
        real_ids = real if len(y_pred.shape) == 3 else real_tokens(ids, ids, self.pad_id)
        return (
            *rows_of(y_true, real, self.end_id, keep_end, TRUE_FILL),
            *rows_of(ids, real_ids, self.end_id, keep_end, PREDICTED_FILL),
            row_weights(real, sample_weight),
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "end_id": self.end_id}


class RowRate(RowMetric):
    """Abstract metric: the ratio of two counts, which are summed over the rows of all batches."""

    sums = ("count", "total")

    def row_counts(self, true: Any, true_lengths: Any, ids: Any, lengths: Any) -> tuple[Any, Any]:
        """Returns numerator and denominator per row, `(B,)`. The rows include their end tokens."""
        raise NotImplementedError

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        *rows, weights = self.rows(y_true, y_pred, sample_weight, keep_end=True)
        for variable, counts in zip((self.count, self.total), self.row_counts(*rows), strict=True):
            add(variable, ops.sum(ops.cast(counts, "float32") * weights))

    def result(self) -> Any:
        return ops.cast(ratio(self.count, self.total), self.dtype)


def add(variable: keras.Variable, increment: Any) -> None:
    """Adds a tensor to a state variable."""
    variable.assign(variable + ops.cast(increment, variable.dtype))


def ratio(numerator: Any, denominator: Any) -> Any:
    """Returns `numerator / denominator`, or 0 where the denominator is 0."""
    # Some operations of JAX accept no variable.
    numerator, denominator = map(ops.convert_to_tensor, (numerator, denominator))
    empty = ops.equal(denominator, 0)
    return ops.where(empty, 0.0, numerator / ops.where(empty, 1.0, denominator))
