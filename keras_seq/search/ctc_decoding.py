"""CTC decoding: greedy search and prefix beam search."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_seq import backend
from keras_seq.backend import gather
from keras_seq.search.hypotheses import NEG_INF, exists, select_rows

# Shape letters: B batch, T frames, V vocabulary, K beam, N n-best, L labels.


class Labelings(NamedTuple):
    """Label sequences, best first.

    Attributes:
        labels: Int32 `(B, N, T)`, padded with 0.
        lengths: Int32 `(B, N)`, number of labels.
        scores: Float `(B, N)`, log-probability; -1e30 if a row has fewer than N labelings.
    """

    labels: Any
    lengths: Any
    scores: Any


def ctc_greedy_search(logits: Any, mask: Any = None) -> Labelings:
    """Finds the labels of the most probable path: repetitions are merged, then blanks removed.

        path_t = argmax over k of P(k at frame t)

    The most probable labels may differ, because their probability is the sum over many paths,
    which `ctc_beam_search` computes.

    Args:
        logits: Float tensor `(B, T, V)`; label 0 is the blank.
        mask: Optional bool tensor `(B, T)`, True at real frames, with the padding at the end.
            Logits of `layers.CTCLogits` need no mask.

    Returns:
        `Labelings` with N = 1. The score is the log-probability of the path.

    Raises:
        ValueError: If the rank of the logits is not 3.

    Example:

    >>> logits = keras.ops.log(keras.ops.array([[[.1, .9], [.2, .8], [.7, .3], [.4, .6]]]))
    >>> result = ctc_greedy_search(logits)
    >>> [int(label) for label in result.labels[0, 0]]
    [1, 1, 0, 0]

    Reference:
        Graves et al., "Connectionist Temporal Classification", ICML 2006,
        section 3.2, "best path decoding"
    """
    scores, real = _log_probabilities(logits, mask)
    path = ops.cast(ops.argmax(scores, axis=-1), "int32")  # (B, T)
    path = ops.where(real, path, 0)
    before = ops.pad(path[:, :-1], [[0, 0], [1, 0]])
    is_label = ops.logical_and(path > 0, ops.not_equal(path, before))
    # Sorts frames with a label before frames without, both in order of time.
    frames = ops.cumsum(ops.ones_like(path), axis=1)
    keys = ops.where(is_label, frames, frames + backend.shape(path)[1])
    order = ops.cast(ops.argsort(keys, axis=1), "int32")
    labels = gather(ops.where(is_label, path, 0), order)
    best = gather(scores, path[..., None])[..., 0]
    best = ops.where(real, best, ops.zeros((), scores.dtype))
    return Labelings(
        labels=labels[:, None],
        lengths=ops.sum(ops.cast(is_label, "int32"), axis=1)[:, None],
        scores=ops.sum(best, axis=1)[:, None],
    )


def ctc_beam_search(
    logits: Any, mask: Any = None, *, beam_size: int = 10, n_best: int = 1
) -> Labelings:
    """Finds the most probable labels by beam search over their prefixes.

    The probability of all paths to a prefix y is the sum of two numbers, b for paths that end with
    a blank and n for paths that end with a label, because a repeated label counts as new only
    after a blank:

        b_t(y) = P(blank at t) (b_{t-1}(y) + n_{t-1}(y))
        n_t(y) = P(last(y) at t) (n_{t-1}(y) + b_{t-1}(y') [+ n_{t-1}(y') if the last
            two labels of y differ]),    y' = y without its last label

    Each frame keeps the `beam_size` prefixes with the largest sums. A beam wide enough for all
    prefixes makes the search exact. With a narrower beam, a score is a lower bound, because it
    lacks the paths through dropped prefixes.

    `keras.ops.ctc_decode` finds the same labels. On TensorFlow it runs on CPUs only and rejects a
    batch in which a row has fewer prefixes than `n_best`; on JAX it is hundreds of times slower.

    Args:
        logits: Float tensor `(B, T, V)`, V known; label 0 is the blank.
        mask: Optional bool tensor `(B, T)`, as in `ctc_greedy_search`.
        beam_size: Positive integer K.
        n_best: Positive integer N, at most `beam_size`.

    Returns:
        `Labelings`. Ties go to prefixes already in the beam, in their order, then to the lower
        label.

    Raises:
        ValueError: If the rank of the logits is not 3, or a size is out of range.

    Example:

    >>> logits = keras.ops.log(keras.ops.array([[[.6, .4], [.6, .4]]]))
    >>> # Blank is more probable at both frames, but three of four paths give label 1.
    >>> result = ctc_beam_search(logits, n_best=2)
    >>> [int(length) for length in result.lengths[0]]
    [1, 0]
    >>> round(float(keras.ops.exp(result.scores[0, 0])), 2)
    0.64

    Reference:
        Graves, "Supervised Sequence Labelling with Recurrent Neural Networks", 2012, section 7.5.3;
        Hannun et al., "First-Pass Large Vocabulary Continuous Speech Recognition using
        Bi-Directional Recurrent DNNs", 2014, algorithm 1, https://arxiv.org/abs/1408.2873
    """
    if not isinstance(beam_size, int) or beam_size < 1:
        raise ValueError(f"`beam_size` must be a positive integer, received {beam_size!r}.")
    if not isinstance(n_best, int) or not 1 <= n_best <= beam_size:
        raise ValueError(
            f"`n_best` must be an integer from 1 to the beam size {beam_size}, received {n_best!r}."
        )
    scores, real = _log_probabilities(logits, mask)
    batch, frames = backend.shape(real)
    # The first slot holds the empty prefix; the others are empty.
    blank = ops.cast(ops.where(ops.arange(beam_size) == 0, 0.0, NEG_INF), scores.dtype)
    state = {
        "frame": ops.zeros((), "int32"),
        "blank": ops.zeros((batch, beam_size), scores.dtype) + blank,
        "label": ops.full((batch, beam_size), NEG_INF, scores.dtype),
        "last": ops.zeros((batch, beam_size), "int32"),
        "lengths": ops.zeros((batch, beam_size), "int32"),
        "labels": ops.zeros((batch, beam_size, frames), "int32"),
    }

    def step(state: Any) -> Any:
        frame = state["frame"]
        new = _next_prefixes(ops.take(scores, frame, axis=1), state)
        old = {name: state[name] for name in new}
        return ({"frame": frame + 1, **select_rows(ops.take(real, frame, axis=1), new, old)},)

    (state,) = ops.while_loop(lambda state: state["frame"] < frames, step, (state,))
    totals = ops.logaddexp(state["blank"], state["label"])[:, :n_best]
    is_labeling = exists(totals)
    return Labelings(
        labels=ops.where(is_labeling[..., None], state["labels"][:, :n_best], 0),
        lengths=ops.where(is_labeling, state["lengths"][:, :n_best], 0),
        scores=ops.where(is_labeling, totals, ops.cast(NEG_INF, totals.dtype)),
    )


def _next_prefixes(now: Any, state: dict[str, Any]) -> dict[str, Any]:
    """Returns the K best prefixes after one more frame, best first.

    `now` `(B, V)` are the log-probabilities of the frame. `state` has the prefixes before the
    frame: their sums `blank` and `label`, `last` and `lengths`, each `(B, K)`, and `labels` `(B, K,
    T)`.
    """
    beam_size, size = state["last"].shape[1], now.shape[1]
    missing = ops.cast(NEG_INF, now.dtype)
    blank, label, longer = _next_sums(now, state, missing)
    same = ops.where(_is_prefix(state), ops.logaddexp(blank, label), missing)
    flat = ops.reshape(longer, (-1, beam_size * size))
    _, index = backend.top_k(ops.concatenate([same, flat], axis=1), beam_size)  # (B, K)
    is_same = index < beam_size
    longer_index = ops.maximum(index - beam_size, 0)
    parent = ops.where(is_same, index, longer_index // size)
    new_label = longer_index % size
    lengths, labels = gather(state["lengths"], parent), gather(state["labels"], parent)
    # Position of the new label; -1 if the prefix stays the same.
    end = ops.where(is_same, -1, lengths)
    return {
        "blank": ops.where(is_same, gather(blank, parent), missing),
        "label": ops.where(is_same, gather(label, parent), gather(flat, longer_index)),
        "last": ops.where(is_same, gather(state["last"], parent), new_label),
        "lengths": lengths + ops.cast(ops.logical_not(is_same), "int32"),
        "labels": ops.where(
            ops.equal(_positions(labels), end[..., None]), new_label[..., None], labels
        ),
    }


def _next_sums(now: Any, state: dict[str, Any], missing: Any) -> tuple[Any, Any, Any]:
    """Returns the new sums of each prefix, and of each prefix with one more label.

    These are the sums of paths that end with a blank and with a label, each `(B, K)`; and the sums
    of the longer prefixes, `(B, K, V)`.
    """
    size = now.shape[1]
    totals, is_prefix = ops.logaddexp(state["blank"], state["label"]), _is_prefix(state)
    is_last = ops.equal(state["last"][..., None], ops.arange(size))  # (B, K, V)

    # A repeated label is a new label only after a blank.
    longer = ops.where(is_last, state["blank"][..., None], totals[..., None]) + now[:, None]
    is_allowed = ops.logical_and(ops.arange(size) > 0, is_prefix[..., None])
    longer = ops.where(is_allowed, longer, missing)  # (B, K, V)

    blank = totals + now[:, :1]
    repeated = state["label"] + gather(now, state["last"])
    # The empty prefix has no last label.
    label = ops.where(state["lengths"] > 0, repeated, missing)
    # New paths of a longer prefix that is already in the beam are added to that prefix.
    is_parent = _is_parent(state, is_prefix)  # (B, K of the child, K of the parent)
    last = ops.repeat(state["last"][:, None], state["last"].shape[1], axis=1)
    from_parent = ops.swapaxes(gather(longer, last), 1, 2)
    # For an empty batch, Keras requires an initial value.
    added = ops.max(ops.where(is_parent, from_parent, missing), axis=2, initial=NEG_INF)  # (B, K)
    in_beam = ops.logical_and(is_parent[..., None], is_last[:, :, None])  # (B, K, K, V)
    longer = ops.where(ops.any(in_beam, axis=1), missing, longer)
    return blank, ops.logaddexp(label, added), longer


def _is_prefix(state: dict[str, Any]) -> Any:
    return exists(ops.logaddexp(state["blank"], state["label"]))


def _is_parent(state: dict[str, Any], is_prefix: Any) -> Any:
    """Returns bool `(B, K, K)`, True at [b, j, k] if prefix j is prefix k and one more label."""
    lengths, labels = state["lengths"], state["labels"]
    # Removes the last label of each prefix. Labels beyond the length are 0.
    is_end = ops.equal(_positions(labels), lengths[..., None] - 1)
    shorter = ops.where(is_end, 0, labels)
    equal = ops.all(ops.equal(shorter[:, :, None], labels[:, None]), axis=3)
    one_more = ops.equal(lengths[:, :, None], lengths[:, None] + 1)
    both = ops.logical_and(is_prefix[:, :, None], is_prefix[:, None])
    return ops.logical_and(ops.logical_and(equal, one_more), both)


def _positions(labels: Any) -> Any:
    return ops.cumsum(ops.ones_like(labels), axis=2) - 1


def _log_probabilities(logits: Any, mask: Any) -> tuple[Any, Any]:
    """Returns log-probabilities, in float32 or float64, and the mask of real frames."""
    if len(logits.shape) != 3:
        raise ValueError(
            "The logits must be of shape (batch, frames, vocabulary), received "
            f"{tuple(logits.shape)}."
        )
    if keras.backend.standardize_dtype(logits.dtype) != "float64":
        logits = ops.cast(logits, "float32")
    if mask is None:
        # At padding, `layers.CTCLogits` makes all labels except the blank nearly impossible.
        mask = ops.logical_not(ops.all(logits[..., 1:] - logits[..., :1] < -1e8, axis=-1))
    return ops.log_softmax(logits, axis=-1), ops.cast(mask, "bool")
