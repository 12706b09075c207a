"""Base classes of the losses: argument checks, masks and reductions."""

from typing import Any

import keras
from keras import ops


class MaskedLoss(keras.losses.Loss):
    """Abstract loss: the sum or the weighted mean over all items that are not masked."""

    def __init__(self, reduction: str, name: str, **kwargs: Any) -> None:
        super().__init__(name=name, reduction=reduction, **kwargs)
        if reduction not in ("mean_with_sample_weight", "sum"):
            raise ValueError(
                f'`reduction` must be "mean_with_sample_weight" or "sum", received {reduction!r}.'
            )

    def reduce(self, losses: Any, counts: Any, sample_weight: Any = None) -> Any:
        """Returns the weighted sum of the losses, or their weighted mean per item.

        `losses` is 0 for masked items. `counts` is the number of unmasked items in each loss. There
        is one sample weight per row or per loss.
        """
        counts = ops.cast(counts, losses.dtype)
        weights = 1.0
        if sample_weight is not None:
            weights = ops.cast(sample_weight, losses.dtype)
            if len(weights.shape) < len(losses.shape):
                weights = weights[:, None]
        summed = ops.sum(losses * weights)
        if self.reduction == "sum":
            return summed
        total = ops.sum(counts * weights)
        return summed / ops.where(total > 0, total, ops.ones_like(total))


class MaskedCrossEntropy(MaskedLoss):
    """Abstract label-smoothed cross-entropy of the ids other than `ignored_id`."""

    ignored_id: int
    default_name: str
    # If False, the value of the loss excludes label smoothing. The gradient always includes it.
    smoothed_value = True

    def __init__(
        self,
        label_smoothing: float = 0.0,
        reduction: str = "mean_with_sample_weight",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(reduction, name or self.default_name, **kwargs)
        if not 0 <= label_smoothing < 1:
            raise ValueError(f"`label_smoothing` must be in [0, 1), received {label_smoothing!r}.")
        self.label_smoothing = label_smoothing

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        y_true = ops.cast(y_true, "int32")
        real = ops.not_equal(y_true, self.ignored_id)
        # `where` instead of a weight of 0, because the logits of padding may be NaN.
        losses = ops.where(real, self.call(y_true, y_pred), 0.0)
        return self.reduce(losses, real, sample_weight)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "label_smoothing": self.label_smoothing}
