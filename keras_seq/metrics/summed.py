"""Bases of the metrics, whose state variables are sums over rows."""

from typing import Any

import keras
from keras import ops

from keras_seq.metrics.tokens import pairs_of_rows


class SummedMetric(keras.metrics.Metric):
    """Abstract metric whose state is a set of sums, so batches can be split and ordered freely.

    Sums use float32 or more, whatever the dtype of the result.
    """

    def __init__(self, pad_id: int | None, name: str, dtype: Any) -> None:
        super().__init__(name=name, dtype=dtype)
        self.pad_id = pad_id

    def add_sum(self, name: str, shape: tuple[int, ...] = ()) -> keras.Variable:
        """Adds a state variable of zeros."""
        # A sum in half precision stops growing at a few thousand.
        dtype = keras.backend.result_type(self.dtype, "float32")
        return self.add_variable(shape, "zeros", dtype=dtype, name=name)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "pad_id": self.pad_id}


class RowMetric(SummedMetric):
    """Abstract metric of rows that end with `end_id`, or with padding alone if it is None."""

    def __init__(self, pad_id: int | None, end_id: int | None, name: str, dtype: Any) -> None:
        super().__init__(pad_id, name, dtype)
        self.end_id = end_id

    def rows(self, y_true: Any, y_pred: Any, sample_weight: Any, keep_end: bool) -> tuple[Any, ...]:
        """Returns truth and prediction as rows of tokens, see `pairs_of_rows`."""
        return pairs_of_rows(y_true, y_pred, sample_weight, self.pad_id, self.end_id, keep_end)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "end_id": self.end_id}


def add(variable: keras.Variable, increment: Any) -> None:
    """Adds a tensor to a state variable."""
    variable.assign(variable + ops.cast(increment, variable.dtype))


def ratio(numerator: Any, denominator: Any) -> Any:
    """Returns `numerator / denominator`, or 0 where the denominator is 0."""
    # Some operations of JAX accept no variable.
    numerator, denominator = map(ops.convert_to_tensor, (numerator, denominator))
    empty = ops.equal(denominator, 0)
    return ops.where(empty, 0.0, numerator / ops.where(empty, 1.0, denominator))
