"""Base class of metrics that are computed from texts on the host."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.metrics.summed import RowMetric, add

Decode = Callable[[list[list[int]]], Sequence[str]]


class TextMetric(RowMetric):
    """Abstract metric of lists of strings, or of ids that `decode` turns into strings.

    The state is one vector of sums. A subclass defines `num_statistics` and `statistics_of_pair`,
    and may override `statistics_of_tokens`. `decode` maps a list of rows of ids, without end
    tokens, to one string per row.
    """

    num_statistics: int

    def __init__(
        self,
        decode: Decode | None = None,
        pad_id: int | None = 0,
        end_id: int | None = 3,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(pad_id, end_id, name, dtype)
        self.decode = decode
        self.statistics = self.add_sum("statistics", (self.num_statistics,))

    def statistics_of_pair(self, truth: str, prediction: str) -> Sequence[float]:
        """Returns the statistics of one pair of texts. All statistics are sums over pairs."""
        raise NotImplementedError

    def statistics_of_tokens(self, *rows: Any) -> Any:
        """Returns the summed statistics of rows of ids that are not decoded to strings."""
        raise TypeError(
            f"{type(self).__name__} compares characters: pass lists of strings, or create the "
            "metric with `decode`, a function of lists of ids to strings."
        )

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        text = is_text(y_true), is_text(y_pred)
        if any(text) and not all(text):
            raise TypeError("`y_true` and `y_pred` must both be lists of strings, or both ids.")
        if all(text):
            sums = self._statistics_of_lines(y_true, y_pred, sample_weight)
        else:
            rows = self.rows(y_true, y_pred, sample_weight, keep_end=False)
            if self.decode is None:
                sums = self.statistics_of_tokens(*rows)
            else:
                sums = backend.on_host(self._statistics_of_ids, (self.num_statistics,), *rows)
        add(self.statistics, ops.broadcast_to(sums, (self.num_statistics,)))

    def _statistics_of_lines(self, truths: Any, predictions: Any, weights: Any) -> np.ndarray:
        truths, predictions = list(truths), list(predictions)
        if weights is None:
            weights = np.ones(len(truths))
        weights = np.asarray(weights, "float64").reshape(-1)
        if not len(truths) == len(predictions) == len(weights):
            raise ValueError(
                "`y_true`, `y_pred` and `sample_weight` must have as many lines, received "
                f"{len(truths)}, {len(predictions)} and {len(weights)}."
            )
        total = np.zeros(self.num_statistics)
        for truth, prediction, weight in zip(truths, predictions, weights, strict=True):
            if weight:
                total += weight * np.asarray(self.statistics_of_pair(truth, prediction), "float64")
        return total.astype("float32")

    def _statistics_of_ids(
        self, true: Any, true_lengths: Any, ids: Any, lengths: Any, weights: Any
    ) -> np.ndarray:
        counted = np.flatnonzero(weights)
        assert self.decode is not None
        truths, predictions = (
            self.decode([side[row, : ends[row]].tolist() for row in counted])
            for side, ends in ((true, true_lengths), (ids, lengths))
        )
        return self._statistics_of_lines(truths, predictions, weights[counted])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "decode": keras.saving.serialize_keras_object(self.decode)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "TextMetric":
        decode = config["decode"]
        if isinstance(decode, dict):
            decode = keras.saving.deserialize_keras_object(decode)
        return cls(**{**config, "decode": decode})


def is_text(lines: Any) -> bool:
    """Returns True for a list or an array of strings; raises TypeError for one string."""
    if isinstance(lines, str):
        raise TypeError(f"`y_true` and `y_pred` must be lists of strings, received {lines!r}.")
    if isinstance(lines, np.ndarray) and lines.dtype.kind in "UO":
        lines = lines.tolist()
    return isinstance(lines, (list, tuple)) and bool(lines) and isinstance(lines[0], str)
