"""The loss of a plugin, a function of ids and logits, as a Keras loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras import ops

from keras_seq import backend
from keras_seq.losses.masked_loss import MaskedLoss
from keras_seq.plugins import PluginError, added
from keras_seq.plugins.registry import call


class FunctionLoss(MaskedLoss):
    """The sum of the loss `name` of a plugin over all ids of the targets except `ignored_id`.

    The function takes int32 ids `(N,)` and float32 logits `(N, V)`, and returns losses `(N,)`. With
    logits of M models that are trained together, the losses are the means over the models.
    """

    def __init__(self, name: str, ignored_id: int) -> None:
        super().__init__("sum", "function_loss")
        self._plugin_name = name
        self._function: Callable[[Any, Any], Any] = added("loss")[name]
        self._ignored_id = ignored_id

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        y_true = ops.cast(y_true, "int32")
        real = ops.not_equal(y_true, self._ignored_id)
        # The logits of padding may be NaN. A function of NaN would have NaN as its gradient, even
        # with a weight of 0.
        is_real = real
        while len(is_real.shape) < len(y_pred.shape):
            is_real = ops.expand_dims(is_real, -1)
        y_pred = ops.where(is_real, y_pred, ops.zeros_like(y_pred))
        losses = ops.where(real, self.call(y_true, y_pred), 0.0)
        return self.reduce(losses, real, sample_weight)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of each id, in the shape of `y_true`."""
        axis = len(y_true.shape)
        has_members = len(y_pred.shape) - axis > 1
        ids = ops.maximum(y_true, 0)
        if has_members:
            ids = ops.repeat(ops.expand_dims(ids, axis), y_pred.shape[axis], axis=axis)
        logits = ops.cast(ops.reshape(y_pred, (-1, y_pred.shape[-1])), "float32")
        flat = ops.reshape(ids, (-1,))
        losses = call("loss", self._plugin_name, lambda: self._function(flat, logits))
        if len(losses.shape) != 1:
            raise PluginError(
                f"the loss {self._plugin_name!r}: received a result of shape {losses.shape}, "
                "expected the loss of each id, (N,)"
            )
        losses = ops.reshape(losses, backend.shape(ids))
        return ops.mean(losses, axis=axis) if has_members else losses
