"""Loss of connectionist temporal classification (CTC)."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.custom_gradient import custom_gradient
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.step_loop import run_steps
from keras_seq.layers.speech.ctc_logits import blank_frames
from keras_seq.losses.masked_loss import MaskedLoss

# Shape letters: B batch, T frames, L labels, S = 2 L + 1 states, V vocabulary.

# Replaces log 0. It is finite, so that differences are finite, and a power of 2, because Keras
# rounds maxima of float64 to float32 on torch.
_LOG_ZERO = -(2.0**100)
# Threshold between the logits of a network and the logits that `blank_frames` writes.
_PADDING_LOGIT = -1e8


@keras.saving.register_keras_serializable(package="keras_seq")
class CTCLoss(MaskedLoss):
    """Connectionist temporal classification: loss of labels whose times are unknown.

        loss = -log sum over the alignments a to y of prod over t of P(a_t at frame t)

    An alignment assigns a label or the blank (id 0) to each frame. Merging repetitions and
    dropping blanks turns it into y. The forward algorithm computes the sum in log space; one loop
    runs forward and backward algorithm for loss and gradient:

        z' = blank, y_1, blank, y_2, ... blank
        alpha_t(s) = P(z'_s at t) (alpha_{t-1}(s) + alpha_{t-1}(s - 1) + alpha_{t-1}(s - 2)),
            the last only if z'_s is neither blank nor z'_{s - 2}
        d loss / d logit_t(k) = P(k at t) - sum over s with z'_s = k of
            alpha_t(s) beta_t(s) / (P(k at t) P(y))

    Use it for speech recognition and other tasks with more frames than labels. `layers.CTCLogits`
    turns padded frames into certain blanks, which change neither loss nor gradient. A row does not
    count if it has no frames, or fewer frames than `ctc_needed_frames(labels)` and thus no
    alignment. In contrast, `keras.losses.CTC` counts padded frames and returns 707 (TensorFlow) or
    1e5 (JAX) for rows without an alignment.

    Shapes: B batch, T frames, L labels, V vocabulary.

    Args:
        reduction: `"mean_with_sample_weight"`, the weighted mean over the rows that count, or
            `"sum"`, their weighted sum. Defaults to the mean.

    Call arguments:
        y_true: Integer labels `(B, L)` from 1 to V - 1, padded with 0 at the end.
        y_pred: Float logits `(B, T, V)`.
        sample_weight: Optional float tensor `(B,)`.

    Returns:
        Scalar in float32 or more; 0 for a batch in which no row counts.

    Raises:
        ValueError: If `reduction` is not one of the two, or a shape does not fit.

    Example:

    >>> loss = CTCLoss()
    >>> logits = keras.ops.zeros((1, 2, 3))
    >>> # Three of nine alignments yield the label 1: 11, 1-, -1.
    >>> round(float(loss(keras.ops.array([[1]]), logits)), 4)
    1.0986

    Reference:
        Graves, Fernández, Gomez and Schmidhuber, "Connectionist Temporal Classification", ICML
        2006, sections 3.1, 4.1 and 4.2
    """

    def __init__(
        self, reduction: str = "mean_with_sample_weight", name: str = "ctc_loss", **kwargs: Any
    ) -> None:
        super().__init__(reduction, name, **kwargs)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        losses, counts = ctc_losses(y_true, y_pred)
        if sample_weight is not None:
            sample_weight = ops.reshape(sample_weight, (-1,))
        return self.reduce(losses, counts, sample_weight)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of each row, `(B,)`."""
        return ctc_losses(y_true, y_pred)[0]


def ctc_needed_frames(labels: Any) -> Any:
    """Minimum number of frames of an alignment: one per label, one between equal labels.

    Args:
        labels: Integers `(B, L)`, padded with 0.

    Returns:
        Int32 tensor `(B,)`.

    Example:

    >>> [int(count) for count in ctc_needed_frames(keras.ops.array([[1, 2, 2], [3, 0, 0]]))]
    [4, 1]
    """
    labels = ops.cast(labels, "int32")
    real = ops.not_equal(labels, 0)
    repeated = ops.logical_and(real[:, 1:], ops.equal(labels[:, 1:], labels[:, :-1]))
    return ops.sum(ops.cast(real, "int32"), axis=1) + ops.sum(ops.cast(repeated, "int32"), axis=1)


def ctc_losses(labels: Any, logits: Any, mask: Any = None) -> tuple[Any, Any]:
    """Returns -log P(labels) of each row, and a bool `(B,)`, True where a row has an alignment.

    `labels` `(B, L)` are padded with 0. `mask` `(B, T)` is for logits that do not come from
    `layers.CTCLogits`; padding must be at the ends. Losses `(B,)` are float32 or more, and 0 for
    rows that do not count.
    """
    if len(labels.shape) != 2 or len(logits.shape) != 3:
        raise ValueError(
            "CTC expects labels of shape (batch, labels) and logits of shape (batch, frames, "
            f"vocabulary), received {tuple(labels.shape)} and {tuple(logits.shape)}."
        )
    labels = ops.cast(labels, "int32")
    logits = blank_frames(at_least_float32(logits), mask)
    # A comparison with NaN is False, so a frame of NaN counts and shows in the loss.
    padding = ops.all(logits[..., 1:] - logits[..., :1] < _PADDING_LOGIT, axis=-1)
    frames = ops.sum(ops.cast(ops.logical_not(padding), "int32"), axis=1)
    counts = ops.logical_and(frames > 0, ctc_needed_frames(labels) <= frames)
    losses = _negative_log_likelihood(labels, logits, counts)
    return ops.where(counts, losses, ops.zeros_like(losses)), counts


def _negative_log_likelihood(labels: Any, logits: Any, counts: Any) -> Any:
    states = _states(labels)  # (B, S)
    last = 2 * ops.sum(ops.cast(ops.not_equal(labels, 0), "int32"), axis=1)  # (B,)

    @custom_gradient
    def losses_of(logits: Any) -> tuple[Any, Callable[[Any], Any]]:
        log_probabilities = ops.log_softmax(logits, axis=-1)
        chosen = ops.take_along_axis(log_probabilities, states[:, None, :], axis=2)  # (B, T, S)
        forward, backward = _forward_backward(chosen, states, last)
        # Every alignment passes through exactly one state at the first frame.
        likelihood = ops.logsumexp(forward[:, 0] + backward[:, 0] - chosen[:, 0], axis=1)

        def gradient(upstream: Any) -> Any:
            scale = ops.where(counts, upstream, ops.zeros_like(upstream))[:, None, None]
            passing = ops.exp(forward + backward - chosen - likelihood[:, None, None])
            spread = ops.one_hot(states, logits.shape[-1], dtype=logits.dtype)  # (B, S, V)
            return scale * (ops.exp(log_probabilities) - ops.matmul(passing, spread))

        return -likelihood, gradient

    return losses_of(logits)


def _states(labels: Any) -> Any:
    """Returns the states blank, label, blank, label, ..., blank: `(B, 2 L + 1)`."""
    blanks = ops.zeros_like(labels)
    pairs = ops.stack([blanks, labels], axis=2)  # (B, L, 2)
    pairs = ops.reshape(pairs, (backend.shape(labels)[0], 2 * backend.shape(labels)[1]))
    return ops.pad(pairs, [[0, 0], [0, 1]])


def _forward_backward(chosen: Any, states: Any, last: Any) -> tuple[Any, Any]:
    """Returns log alpha and log beta, `(B, T, S)`. Both include the probability of frame t.

    An alignment read backwards is an alignment of the reversed labels. One loop over a doubled
    batch therefore computes both.
    """
    indices = ops.arange(backend.shape(states)[1], dtype="int32")
    # State s of the labels is state `last - s` of the reversed labels. States > last are unused.
    mirror = ops.where(indices <= last[:, None], last[:, None] - indices, indices)  # (B, S)
    reversed_states = ops.take_along_axis(states, mirror, axis=1)
    reversed_chosen = ops.take_along_axis(ops.flip(chosen, axis=1), mirror[:, None, :], axis=2)
    both = ops.concatenate([states, reversed_states], axis=0)
    inputs = ops.concatenate([chosen, reversed_chosen], axis=0)  # (2 B, T, S)

    log_zero = ops.convert_to_tensor(_LOG_ZERO, chosen.dtype)
    other = ops.not_equal(both, ops.pad(both[:, :-2], [[0, 0], [2, 0]]))
    skips = ops.logical_and(ops.not_equal(both, 0), other)
    skips = ops.where(skips, ops.zeros_like(log_zero), log_zero)

    def step(current: Any, carried: Any) -> tuple[Any, list[Any]]:
        (sums,) = carried
        padded = ops.pad(sums, [[0, 0], [2, 0]], constant_values=_LOG_ZERO)
        before, two_before = padded[:, 1:-1], padded[:, :-2] + skips
        largest = ops.maximum(ops.maximum(sums, before), two_before)
        total = ops.exp(sums - largest) + ops.exp(before - largest) + ops.exp(two_before - largest)
        sums = largest + ops.log(total) + current
        return sums, [sums]

    # Start in state 0 before the first frame, so that the first frame is in state 0 or 1.
    start = ops.where(indices == 0, ops.zeros_like(log_zero), log_zero) + ops.zeros_like(
        inputs[:, 0]
    )
    policy = keras.DTypePolicy(keras.backend.standardize_dtype(chosen.dtype))
    sums, _ = run_steps(step, inputs, [start], policy)
    forward, backward = ops.split(sums, 2, axis=0)
    backward = ops.take_along_axis(ops.flip(backward, axis=1), mirror[:, None, :], axis=2)
    return forward, ops.where((indices <= last[:, None])[:, None, :], backward, log_zero)
