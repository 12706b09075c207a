"""Real tokens and rows of a batch, and their weights."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend

# Shape letters: B batch, T steps, N steps of the truth, M steps of the prediction, V vocabulary.

# Fill values of `rows_of`. They differ, so that padding never matches padding.
TRUE_FILL, PREDICTED_FILL = -1, -2


class MaskOf(keras.layers.Layer):
    """Returns the Keras mask of a tensor, or None. Keras passes masks to layers only."""

    def __init__(self) -> None:
        super().__init__(autocast=False, name="mask_of")
        self.supports_masking = True
        self.built = True

    def call(self, inputs: Any, mask: Any = None) -> Any:
        return None if mask is None else ops.copy(mask)

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> None:
        return None


def real_tokens(y_true: Any, y_pred: Any, pad_id: int | None) -> Any:
    """Returns a bool `(B, T)`, False at padding and where the mask of the prediction is False.

    `y_pred` is logits `(B, T, V)`, which may have a Keras mask, or ids `(B, M)`.
    """
    has_padding = pad_id is not None
    real = ops.not_equal(y_true, pad_id) if has_padding else ops.ones_like(y_true, dtype="bool")
    mask = MaskOf()(y_pred) if len(y_pred.shape) == 3 else None
    return real if mask is None else ops.logical_and(real, ops.cast(mask, "bool"))


def as_ids(name: str, ids: Any) -> Any:
    """Returns `ids` as an int32 tensor; raises ValueError unless its rank is 2."""
    ids = ops.convert_to_tensor(ids)
    if len(ids.shape) != 2:
        raise ValueError(
            f"`{name}` must be integer ids of shape (batch, steps), received shape "
            f"{tuple(ids.shape)}."
        )
    return ops.cast(ids, "int32")


def as_logits(y_true: Any, y_pred: Any) -> Any:
    """Returns the logits `y_pred` as a tensor; raises ValueError if their shape is wrong."""
    y_pred = ops.convert_to_tensor(y_pred)
    shape = tuple(y_pred.shape)
    if len(shape) != 3:
        raise ValueError(
            f"`y_pred` must be logits of shape (batch, steps, vocabulary), received shape {shape}."
        )
    if None not in (shape[1], y_true.shape[1]) and shape[1] != y_true.shape[1]:
        raise ValueError(
            f"`y_true` and `y_pred` must have equally many steps, received {y_true.shape[1]} and "
            f"{shape[1]}."
        )
    return y_pred


def predicted_ids(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Returns the prediction as a tensor, and its ids: int32 `(B, T)` or `(B, M)`.

    Raises ValueError if `y_pred` is neither logits `(B, T, V)` nor integer ids `(B, M)`.
    """
    y_pred = ops.convert_to_tensor(y_pred)
    if len(y_pred.shape) == 3:
        y_pred = as_logits(y_true, y_pred)
        return y_pred, ops.cast(ops.argmax(y_pred, axis=-1), "int32")
    dtype = keras.backend.standardize_dtype(y_pred.dtype)
    if len(y_pred.shape) != 2 or "int" not in dtype:
        raise ValueError(
            "`y_pred` must be logits of shape (batch, steps, vocabulary) or integer ids of shape "
            f"(batch, steps), received {dtype} of shape {tuple(y_pred.shape)}."
        )
    return y_pred, ops.cast(y_pred, "int32")


def token_weights(real: Any, sample_weight: Any) -> Any:
    """Returns float weights `(B, T)`, 0 where `real` is False.

    `sample_weight` is None, a scalar, `(B,)`, `(B, 1)` or `(B, T)`.
    """
    weights = ops.cast(real, "float32")
    if sample_weight is None:
        return weights
    sample_weight = ops.cast(ops.convert_to_tensor(sample_weight), "float32")
    if len(sample_weight.shape) == 1:
        sample_weight = sample_weight[:, None]
    return ops.where(real, weights * sample_weight, 0.0)


def row_weights(real: Any, sample_weight: Any) -> Any:
    """Returns float weights `(B,)`, 0 for rows that contain only padding.

    `sample_weight` is None, a scalar, `(B,)` or `(B, 1)`. Other shapes raise ValueError.
    """
    counts = ops.any(real, axis=1)
    weights = ops.cast(counts, "float32")
    if sample_weight is None:
        return weights
    sample_weight = ops.cast(ops.convert_to_tensor(sample_weight), "float32")
    shape = tuple(sample_weight.shape)
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
        raise ValueError(
            f"`sample_weight` must have one weight per row, shape (batch,), received shape {shape}."
        )
    if len(shape) == 2:
        sample_weight = sample_weight[:, 0]
    return ops.where(counts, weights * sample_weight, 0.0)


def rows_of(ids: Any, real: Any, end_id: int | None, keep_end: bool, fill: int) -> tuple[Any, Any]:
    """Moves the real tokens of each row to its start and cuts the row at its end token.

    Returns int32 ids `(B, T)`, filled up with `fill`, and lengths `(B,)`, which count the end token
    if `keep_end`.
    """
    if end_id is not None:
        ends = ops.cast(ops.logical_and(real, ops.equal(ids, end_id)), "int32")
        before = ops.cumsum(ends, axis=1) - (ends if keep_end else 0)
        real = ops.logical_and(real, ops.equal(before, 0))
    steps = ops.cumsum(ops.ones_like(ids), axis=1) - 1
    # The sort keys are unique, because backends order equal keys differently.
    order = ops.argsort(ops.where(real, steps, steps + backend.shape(ids)[1]), axis=1)
    lengths = ops.sum(ops.cast(real, "int32"), axis=1)
    moved = ops.take_along_axis(ids, order, axis=1)
    return ops.where(steps < lengths[:, None], moved, fill), lengths
