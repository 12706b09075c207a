"""Word-level distillation: the training imitates the probabilities of a teacher."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.losses.masked_loss import MaskedLoss
from keras_seq.run import Run
from keras_seq.run.models import load_model

# Shape letters: B batch, T target steps, V vocabulary.


class StudentAndTeacher(keras.Model):
    """The logits of a model and of its teacher, side by side as `(B, T, 2, V)`; internal.

    Args:
        student: The model of the run; its weights are those of this model.
        teacher: A model with the same inputs and vocabulary, which is not trained. Its outputs are
            logits or log-probabilities.
    """

    def __init__(self, student: Any, teacher: Any) -> None:
        super().__init__(name="training_wrapper")
        self.plain = student
        # A function, because Keras would count the weights of an attribute as those of this model.
        self._teach = lambda inputs: teacher(inputs, training=False)
        self.built = True

    def call(self, inputs: Any, training: Any = None) -> Any:
        logits = self.plain(inputs, training=training)
        with backend.without_gradients():
            taught = ops.stop_gradient(ops.cast(self._teach(inputs), logits.dtype))
        return ops.stack([logits, taught], axis=-2)


class DistillationLoss(MaskedLoss):
    """A loss of the targets and the cross-entropy with the teacher, as a weighted sum; internal.

        loss = (1 - a) inner(y, p) - a sum over v of q_v log p_v

    p is the distribution of the student and q that of the teacher, for each target. The value is
    that of the inner loss alone, so that it is comparable to the loss of a validation.

    Args:
        inner: The loss of the logits of the student.
        ignored_id: The id of `y_true` that does not count.
        share: The weight a, from 0 to 1.

    Reference:
        Kim and Rush, "Sequence-Level Knowledge Distillation", 2016, section 3.1,
        https://arxiv.org/abs/1606.07947
    """

    def __init__(self, inner: Any, ignored_id: int, share: float) -> None:
        super().__init__("sum", "distillation_loss")
        self._inner = inner
        self._ignored_id = ignored_id
        self._share = share

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        real = ops.not_equal(ops.cast(y_true, "int32"), self._ignored_id)
        value = self._inner(y_true, y_pred[..., 0, :], sample_weight)
        taught = self.reduce(self.call(y_true, y_pred), real, sample_weight)
        # 0, with the gradient of the difference.
        difference = self._share * (taught - value)
        return value + difference - ops.stop_gradient(difference)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the cross-entropy with the teacher of each target, in the shape of `y_true`."""
        real = ops.not_equal(ops.cast(y_true, "int32"), self._ignored_id)
        # The logits of padding may be NaN, and so would be the gradient, even with a weight of 0.
        logits = ops.where(real[..., None, None], ops.cast(y_pred, "float32"), 0.0)
        student = ops.log_softmax(logits[..., 0, :], axis=-1)
        teacher = ops.softmax(logits[..., 1, :], axis=-1)
        return ops.where(real, -ops.sum(teacher * student, axis=-1), 0.0)


def with_teacher(run: Run, model: Any, dtype: str | None) -> StudentAndTeacher:
    """Returns a model and the teacher that preparation copied into its run."""
    return StudentAndTeacher(model, load_model(Run.open(run.teacher_directory), dtype=dtype))
