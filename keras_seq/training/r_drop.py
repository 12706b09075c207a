"""R-Drop: two passes with different dropout should agree."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_seq.losses.masked_loss import MaskedLoss

# Shape letters: B batch, T target steps, M models or passes, V vocabulary.


class TwoPasses(keras.Model):
    """The logits of two passes of each model, whose dropout differs; internal.

    They are `(B, T, 2 M, V)` of token sequences, and `(B, 2 M, C)` of the classes of texts, with
    the passes of a model side by side.

    Args:
        model: The model of the run; its weights are those of this model.
        models: The models to train, `model` itself or its members.
    """

    def __init__(self, model: Any, models: list[Any]) -> None:
        super().__init__(name="training_wrapper")
        self.plain = model
        self._passes = [one for one in models for _ in range(2)]
        self.built = True

    def call(self, inputs: Any, training: Any = None) -> Any:
        return ops.stack([one(inputs, training=training) for one in self._passes], axis=-2)


class AgreementLoss(MaskedLoss):
    """A loss and the divergence between the two passes of each model, as a weighted sum; internal.

        loss of y = mean over passes of the inner loss + a / 4 (KL(p || q) + KL(q || p))

    p and q are the distributions of the passes of one model, and several models are averaged. It is
    half of the loss of the paper, whose first term is the sum over both passes. The value excludes
    the divergence, so that it is comparable to the loss of a validation.

    Args:
        inner: The loss of the logits of several models.
        ignored_id: The id of `y_true` that does not count.
        factor: The weight a.

    Reference:
        Liang et al., "R-Drop: Regularized Dropout for Neural Networks", NeurIPS 2021,
        https://arxiv.org/abs/2106.14448
    """

    def __init__(self, inner: Any, ignored_id: int, factor: float) -> None:
        super().__init__("sum", "agreement_loss")
        self._inner = inner
        self._ignored_id = ignored_id
        self._factor = factor

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        real = ops.not_equal(ops.cast(y_true, "int32"), self._ignored_id)
        divergence = ops.where(real, self.call(y_true, y_pred), 0.0)
        # 0, with the gradient of the divergence.
        gradient = divergence - ops.stop_gradient(divergence)
        return self._inner(y_true, y_pred, sample_weight) + self.reduce(
            self._factor / 4 * gradient, real, sample_weight
        )

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns KL(p || q) + KL(q || p) of each target, in the shape of `y_true`."""
        is_real = ops.not_equal(ops.cast(y_true, "int32"), self._ignored_id)
        # The logits of padding may be NaN, and so would be the gradient, even with a weight of 0.
        logits = ops.where(is_real[..., None, None], ops.cast(y_pred, "float32"), 0.0)
        logarithms = ops.log_softmax(logits, axis=-1)
        first, second = logarithms[..., 0::2, :], logarithms[..., 1::2, :]
        # The two divergences add up to the sum of (p - q) (log p - log q).
        terms = (ops.exp(first) - ops.exp(second)) * (first - second)
        return ops.mean(ops.sum(terms, axis=-1), axis=-1)
