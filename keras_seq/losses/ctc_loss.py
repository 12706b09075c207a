"""The loss of connectionist temporal classification."""

import keras
from keras import ops

from keras_seq.layers.internal.custom_gradient import custom_gradient
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.step_loop import run_steps
from keras_seq.layers.speech.ctc_logits import blank_frames

# Shape letters: B batch, T frames, L labels, S = 2 L + 1 states, V vocabulary.

# Far below every sum of log-probabilities, and finite, so that differences of it are. It is a power
# of 2 because Keras' torch backend rounds maxima of float64 to float32, which must not change it.
_NEVER = -(2.0**100)
# Between what a network says and what `blank_frames` writes.
_SURE = -1e8


@keras.saving.register_keras_serializable(package="keras_seq")
class CTCLoss(keras.losses.Loss):
    """Connectionist temporal classification: labels without their times.

        loss = -log sum over all alignments a of y of prod over t of P(a_t at frame t)

    An alignment says for each frame a label or the blank, which is id 0; with
    repetitions joined and then blanks dropped it is y. The sum is that of the
    forward algorithm in log space, and the gradient that of the forward and the
    backward one, both in one loop:

        z' = blank, y_1, blank, y_2, ... blank
        alpha_t(s) = P(z'_s at t) (alpha_{t-1}(s) + alpha_{t-1}(s - 1) + alpha_{t-1}(s - 2)),
            the last only where z'_s is neither blank nor z'_{s - 2}
        d loss / d logit_t(k) = P(k at t) - sum over s with z'_s = k of
            alpha_t(s) beta_t(s) / (P(k at t) P(y))

    `keras.losses.CTC` counts the frames of padding, takes 707 (TensorFlow) or 1e5
    (JAX) for what has no alignment, and on TensorFlow its time grows with the
    square of the labels.

    Frames that are padding say the blank and nothing else; `layers.CTCLogits`
    makes it so, and then they change neither loss nor gradient. A sequence
    without an alignment, because it has fewer frames than
    `ctc_needed_frames(labels)`, does not count, nor does one without a frame.

    Shapes: B batch, T frames, L labels, V vocabulary.

    Args:
        reduction: `"mean_with_sample_weight"`, the weighted mean over the
            sequences that count, or `"sum"`, their weighted sum.

    Call arguments:
        y_true: Integer labels `(B, L)` from 1 to V - 1, followed by 0 as padding.
        y_pred: Float logits `(B, T, V)`.
        sample_weight: Optional float tensor `(B,)`.

    Returns:
        Scalar, float32 at least; 0 for a batch in which nothing counts.

    Raises:
        ValueError: If `reduction` is another one, or a shape does not fit.

    Example:

    >>> loss = CTCLoss()
    >>> logits = keras.ops.zeros((1, 2, 3))
    >>> # Three alignments of nine are the label 1: 11, 1-, -1.
    >>> round(float(loss(keras.ops.array([[1]]), logits)), 4)
    1.0986

    Reference:
        Graves, Fernández, Gomez and Schmidhuber, "Connectionist Temporal
        Classification", ICML 2006, sections 3.1, 4.1 and 4.2
    """

    def __init__(self, reduction="mean_with_sample_weight", name="ctc_loss", **kwargs):
        super().__init__(name=name, reduction=reduction, **kwargs)
        if reduction not in ("mean_with_sample_weight", "sum"):
            raise ValueError(
                f'`reduction` must be "mean_with_sample_weight" or "sum", received {reduction!r}.'
            )

    def __call__(self, y_true, y_pred, sample_weight=None):
        losses, counts = ctc_losses(y_true, y_pred)
        weights = ops.cast(counts, losses.dtype)
        if sample_weight is not None:
            weights = weights * ops.reshape(ops.cast(sample_weight, losses.dtype), (-1,))
        summed = ops.sum(losses * weights)
        if self.reduction == "sum":
            return summed
        total = ops.sum(weights)
        return summed / ops.where(total > 0, total, ops.ones_like(total))

    def call(self, y_true, y_pred):
        """Loss of each sequence, `(B,)`."""
        return ctc_losses(y_true, y_pred)[0]


def ctc_needed_frames(labels):
    """How many frames an alignment has at least: one a label, and a blank between equals.

    Args:
        labels: Integers `(B, L)`, 0 as padding.

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


def ctc_losses(labels, logits, mask=None):
    """-log P of each sequence.

    Args:
        labels: Integers `(B, L)`, 0 as padding.
        logits: Float tensor `(B, T, V)`.
        mask: Optional bool tensor `(B, T)`, for logits that are not yet those of
            `layers.CTCLogits`; padding stands at the ends.

    Returns:
        losses: Tensor `(B,)`, float32 at least, 0 where it does not count.
        counts: Bool tensor `(B,)`, whether there is a frame and an alignment.
    """
    if len(labels.shape) != 2 or len(logits.shape) != 3:
        raise ValueError(
            "CTC takes labels of shape (batch, labels) and logits of shape (batch, frames, "
            f"vocabulary), received {tuple(labels.shape)} and {tuple(logits.shape)}."
        )
    labels = ops.cast(labels, "int32")
    logits = blank_frames(at_least_float32(logits), mask)
    # What is no number is no padding, so that it is not passed over in silence.
    padding = ops.all(logits[..., 1:] - logits[..., :1] < _SURE, axis=-1)
    frames = ops.sum(ops.cast(ops.logical_not(padding), "int32"), axis=1)
    counts = ops.logical_and(frames > 0, ctc_needed_frames(labels) <= frames)
    losses = _negative_log_likelihood(labels, logits, counts)
    return ops.where(counts, losses, ops.zeros_like(losses)), counts


def _negative_log_likelihood(labels, logits, counts):
    states = _states(labels)  # (B, S)
    last = 2 * ops.sum(ops.cast(ops.not_equal(labels, 0), "int32"), axis=1)  # (B,)

    @custom_gradient
    def losses_of(logits):
        log_probabilities = ops.log_softmax(logits, axis=-1)
        chosen = ops.take_along_axis(log_probabilities, states[:, None, :], axis=2)  # (B, T, S)
        forward, backward = _sums(chosen, states, last)
        # All alignments go through some state at the first frame.
        likelihood = ops.logsumexp(forward[:, 0] + backward[:, 0] - chosen[:, 0], axis=1)

        def gradient(upstream):
            scale = ops.where(counts, upstream, ops.zeros_like(upstream))[:, None, None]
            passing = ops.exp(forward + backward - chosen - likelihood[:, None, None])
            spread = ops.one_hot(states, logits.shape[-1], dtype=logits.dtype)  # (B, S, V)
            return scale * (ops.exp(log_probabilities) - ops.matmul(passing, spread))

        return -likelihood, gradient

    return losses_of(logits)


def _states(labels):
    """blank, label, blank, label, ... blank: `(B, 2 L + 1)`."""
    blanks = ops.zeros_like(labels)
    pairs = ops.stack([blanks, labels], axis=2)  # (B, L, 2)
    pairs = ops.reshape(pairs, (ops.shape(labels)[0], 2 * ops.shape(labels)[1]))
    return ops.pad(pairs, [[0, 0], [0, 1]])


def _sums(chosen, states, last):
    """Logs of alpha and beta, `(B, T, S)`: what comes from either end, frame t in both.

    Seen from the end, an alignment is one of the reversed labels: the same loop, with
    twice the rows.
    """
    places = ops.arange(ops.shape(states)[1], dtype="int32")
    # State s of the labels is `last - s` of the reversed ones. Behind them nothing matters.
    mirror = ops.where(places <= last[:, None], last[:, None] - places, places)  # (B, S)
    reversed_states = ops.take_along_axis(states, mirror, axis=1)
    reversed_chosen = ops.take_along_axis(ops.flip(chosen, axis=1), mirror[:, None, :], axis=2)
    both = ops.concatenate([states, reversed_states], axis=0)
    inputs = ops.concatenate([chosen, reversed_chosen], axis=0)  # (2 B, T, S)

    never = ops.convert_to_tensor(_NEVER, chosen.dtype)
    other = ops.not_equal(both, ops.pad(both[:, :-2], [[0, 0], [2, 0]]))
    skips = ops.logical_and(ops.not_equal(both, 0), other)
    skips = ops.where(skips, ops.zeros_like(never), never)

    def step(current, carried):
        (sums,) = carried
        padded = ops.pad(sums, [[0, 0], [2, 0]], constant_values=_NEVER)
        before, two_before = padded[:, 1:-1], padded[:, :-2] + skips
        largest = ops.maximum(ops.maximum(sums, before), two_before)
        total = ops.exp(sums - largest) + ops.exp(before - largest) + ops.exp(two_before - largest)
        sums = largest + ops.log(total) + current
        return sums, [sums]

    # Before the first frame an alignment is at a state -1, from which 0 and 1 follow: as if at 0,
    # from which they follow as well.
    start = ops.where(places == 0, ops.zeros_like(never), never) + ops.zeros_like(inputs[:, 0])
    policy = keras.DTypePolicy(keras.backend.standardize_dtype(chosen.dtype))
    sums, _ = run_steps(step, inputs, [start], policy)
    forward, backward = ops.split(sums, 2, axis=0)
    backward = ops.take_along_axis(ops.flip(backward, axis=1), mirror[:, None, :], axis=2)
    return forward, ops.where((places <= last[:, None])[:, None, :], backward, never)
