"""Strings, and ids that become strings on the host."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from keras_seq import backend
from keras_seq.metrics.tokens import pairs_of_rows

Decode = Callable[[list[list[int]]], Sequence[str]]
# The sums of one pair: a truth and a prediction.
Statistics = Callable[[str, str], Sequence[float]]


def is_text(lines: Any) -> bool:
    """Returns True for a list or an array of strings.

    Raises:
        TypeError: If `lines` is one string.
    """
    if isinstance(lines, str):
        raise TypeError(f"`y_true` and `y_pred` must be lists of strings, received {lines!r}.")
    if isinstance(lines, np.ndarray) and lines.dtype.kind in "UO":
        lines = lines.tolist()
    return isinstance(lines, (list, tuple)) and bool(lines) and isinstance(lines[0], str)


def statistics_of_lines(
    statistics: Statistics, truths: Any, predictions: Any, weights: Any
) -> np.ndarray:
    """The weighted sum of the statistics of each pair of lines, float32.

    Args:
        statistics: Function of a truth and a prediction.
        truths: Strings.
        predictions: As many strings.
        weights: As many numbers, or None.

    Raises:
        ValueError: If the numbers of lines differ.
    """
    truths, predictions = list(truths), list(predictions)
    rows = np.ones(len(truths)) if weights is None else np.asarray(weights, "float64").reshape(-1)
    if not len(truths) == len(predictions) == len(rows):
        raise ValueError(
            f"`y_true`, `y_pred` and `sample_weight` must have as many lines, received "
            f"{len(truths)}, {len(predictions)} and {len(rows)}."
        )
    total: Any = 0.0
    for truth, prediction, weight in zip(truths, predictions, rows, strict=True):
        if weight:
            total = total + weight * np.asarray(statistics(truth, prediction), "float64")
    return np.asarray(total, "float32")


def statistics_of_ids(
    statistics: Statistics,
    count: int,
    decode: Decode,
    y_true: Any,
    y_pred: Any,
    sample_weight: Any,
    pad_id: int | None,
    end_id: int | None,
) -> Any:
    """As `statistics_of_lines`, of the texts of ids. Runs on the host, in compiled code too.

    Args:
        statistics: Function of a truth and a prediction.
        count: How many numbers it returns.
        decode: Function of lists of ids to as many strings.
        y_true: Integer ids `(B, N)`.
        y_pred: Logits `(B, N, V)` or integer ids `(B, M)`.
        sample_weight: Weights `(B,)`, or None.
        pad_id: Id of padding, or None.
        end_id: Id of the end token, which is not decoded, or None.

    Returns:
        Float32 tensor of the sums.
    """

    def summed(true: Any, true_lengths: Any, ids: Any, lengths: Any, weights: Any) -> np.ndarray:
        counted = np.flatnonzero(weights)
        truths, predictions = (
            decode([side[row, : many[row]].tolist() for row in counted])
            for side, many in ((true, true_lengths), (ids, lengths))
        )
        total = statistics_of_lines(statistics, truths, predictions, weights[counted])
        return np.broadcast_to(total, (count,)).astype("float32")

    rows = pairs_of_rows(y_true, y_pred, sample_weight, pad_id, end_id, keep_end=False)
    return backend.on_host(summed, (count,), *rows)


def decode_config(decode: Decode | None) -> Any:
    """A `decode` function as a config has it."""
    return None if decode is None else keras.saving.serialize_keras_object(decode)


def decode_of(config: dict[str, Any]) -> dict[str, Any]:
    """A config with its `decode` as a function again."""
    if isinstance(config.get("decode"), dict):
        decode = keras.saving.deserialize_keras_object(config["decode"])
        config = {**config, "decode": decode}
    return config
