"""From the frames of a recogniser to labels: greedy, and by a search over prefixes."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_seq.backend import gather
from keras_seq.search.hypotheses import NEG_INF

# Shape letters: B batch, T frames, V vocabulary, K beam, N n-best, L labels.


class Labelings(NamedTuple):
    """What was recognised, best first.

    Attributes:
        labels: Int32 `(B, N, T)`, followed by 0.
        lengths: Int32 `(B, N)`, how many labels there are.
        scores: Float `(B, N)`, log-probability; -1e30 where there are fewer than
            N labelings.
    """

    labels: Any
    lengths: Any
    scores: Any


def ctc_greedy_search(logits, mask=None):
    """The labels of the most probable path: repetitions joined, then blanks dropped.

        path_t = argmax over k of P(k at frame t)

    The labels of the most probable path need not be the most probable labels, whose
    probability is spread over many paths; `ctc_beam_search` adds those up.

    Args:
        logits: Float tensor `(B, T, V)`; label 0 is the blank.
        mask: Optional bool tensor `(B, T)`, True where a frame is real; the padding
            stands at the ends. Logits of `layers.CTCLogits` need none.

    Returns:
        `Labelings` with N = 1, whose score is that of the path.

    Raises:
        ValueError: If the logits are of another rank.

    Example:

    >>> logits = keras.ops.log(keras.ops.array([[[.1, .9], [.2, .8], [.7, .3], [.4, .6]]]))
    >>> found = ctc_greedy_search(logits)
    >>> [int(label) for label in found.labels[0, 0]]
    [1, 1, 0, 0]

    Reference:
        Graves et al., "Connectionist Temporal Classification", ICML 2006,
        section 3.2, "best path decoding"
    """
    scores, real = _log_probabilities(logits, mask)
    path = ops.cast(ops.argmax(scores, axis=-1), "int32")  # (B, T)
    path = ops.where(real, path, 0)
    before = ops.pad(path[:, :-1], [[0, 0], [1, 0]])
    kept = ops.logical_and(path > 0, ops.not_equal(path, before))
    # Those kept first, in their order: no two keys are equal.
    frames = ops.cumsum(ops.ones_like(path), axis=1)
    keys = ops.where(kept, frames, frames + ops.shape(path)[1])
    order = ops.cast(ops.argsort(keys, axis=1), "int32")
    labels = gather(ops.where(kept, path, 0), order)
    best = gather(scores, path[..., None])[..., 0]
    best = ops.where(real, best, ops.zeros((), scores.dtype))
    return Labelings(
        labels=labels[:, None],
        lengths=ops.sum(ops.cast(kept, "int32"), axis=1)[:, None],
        scores=ops.sum(best, axis=1)[:, None],
    )


def ctc_beam_search(logits, mask=None, *, beam_size=10, n_best=1):
    """The most probable labels, by a search over their prefixes.

    Of each prefix y the probability of all paths to it so far is kept in two sums,
    since a repeated label is a new one only after a blank:

        b_t(y) = P(blank at t) (b_{t-1}(y) + n_{t-1}(y))
        n_t(y) = P(last(y) at t) (n_{t-1}(y) + b_{t-1}(y') [+ n_{t-1}(y') if the last
            two labels of y differ]),    y' = y without its last label

    The `beam_size` prefixes with the largest sums go on. With a beam wide enough for
    all prefixes this is exact; with a narrower one the sum of a labeling lacks the
    paths through prefixes that were dropped, so that its score is a lower bound.

    `keras.ops.ctc_decode` finds the same, but refuses a batch with a row that has fewer
    prefixes than it is asked for (TensorFlow), has no kernel but for processors there, and
    takes hundreds of times as long on JAX.

    Args:
        logits: Float tensor `(B, T, V)`, V known; label 0 is the blank.
        mask: Optional bool tensor `(B, T)`, as in `ctc_greedy_search`.
        beam_size: Positive integer K.
        n_best: Positive integer N, at most `beam_size`.

    Returns:
        `Labelings`. Ties go to the labeling that was found first, and then to the
        lower label.

    Raises:
        ValueError: If the logits are of another rank, or a size is out of range.

    Example:

    >>> logits = keras.ops.log(keras.ops.array([[[.6, .4], [.6, .4]]]))
    >>> # The blank is the likelier one at both frames, but three of four paths say 1.
    >>> found = ctc_beam_search(logits, n_best=2)
    >>> [int(length) for length in found.lengths[0]]
    [1, 0]
    >>> round(float(keras.ops.exp(found.scores[0, 0])), 2)
    0.64

    Reference:
        Graves, "Supervised Sequence Labelling with Recurrent Neural Networks",
        2012, section 7.5.3; Hannun et al., "First-Pass Large Vocabulary Continuous
        Speech Recognition using Bi-Directional Recurrent DNNs", 2014, algorithm 1,
        https://arxiv.org/abs/1408.2873
    """
    if not isinstance(beam_size, int) or beam_size < 1:
        raise ValueError(f"`beam_size` must be a positive integer, received {beam_size!r}.")
    if not isinstance(n_best, int) or not 1 <= n_best <= beam_size:
        raise ValueError(
            f"`n_best` must be an integer from 1 to the beam size {beam_size}, received {n_best!r}."
        )
    scores, real = _log_probabilities(logits, mask)
    batch, frames = ops.shape(real)
    first = ops.arange(beam_size) == 0
    # One prefix at first, the empty one; the other slots are empty.
    alone = ops.cast(ops.where(first, 0.0, NEG_INF), scores.dtype)
    blank = ops.zeros((batch, beam_size), scores.dtype) + alone
    loop = {
        "frame": ops.zeros((), "int32"),
        "blank": blank,
        "label": ops.full((batch, beam_size), NEG_INF, scores.dtype),
        "last": ops.zeros((batch, beam_size), "int32"),
        "lengths": ops.zeros((batch, beam_size), "int32"),
        "labels": ops.zeros((batch, beam_size, frames), "int32"),
    }

    def step(loop):
        now = ops.take(scores, loop["frame"], axis=1)  # (B, V)
        following = _next_prefixes(now, loop)
        is_real = ops.take(real, loop["frame"], axis=1)  # (B,)

        def kept(old, new):
            return ops.where(ops.reshape(is_real, (-1,) + (1,) * (len(old.shape) - 1)), new, old)

        old = {name: loop[name] for name in following}
        chosen = keras.tree.map_structure(kept, old, following)
        return {"frame": loop["frame"] + 1, **chosen}

    end = ops.while_loop(lambda loop: loop["frame"] < frames, lambda loop: (step(loop),), (loop,))[
        0
    ]
    totals = ops.logaddexp(end["blank"], end["label"])[:, :n_best]
    found = totals > NEG_INF / 2
    lengths = ops.where(found, end["lengths"][:, :n_best], 0)
    return Labelings(
        labels=ops.where(found[..., None], end["labels"][:, :n_best], 0),
        lengths=lengths,
        scores=ops.where(found, totals, ops.cast(NEG_INF, totals.dtype)),
    )


def _next_prefixes(now, loop):
    """The K best prefixes one frame later, best first.

    Args:
        now: Log-probabilities of a frame, `(B, V)`.
        loop: Dict of the prefixes so far: their sums `blank` and `label`, `last` and
            `lengths`, each `(B, K)`, and `labels` `(B, K, T)`.
    """
    beam_size, size = loop["last"].shape[1], now.shape[1]
    never = ops.cast(NEG_INF, now.dtype)
    totals = ops.logaddexp(loop["blank"], loop["label"])  # (B, K)
    exists = totals > NEG_INF / 2
    is_last = ops.equal(loop["last"][..., None], ops.arange(size))  # (B, K, V)

    # With one label more. The same label again needs a blank before.
    longer = ops.where(is_last, loop["blank"][..., None], totals[..., None]) + now[:, None]
    is_label = ops.logical_and(ops.arange(size) > 0, exists[..., None])
    longer = ops.where(is_label, longer, never)  # (B, K, V)

    # As long as before.
    blank = totals + now[:, :1]
    # The empty prefix has no last label, and then no sum of paths that end with it.
    again = gather(now, loop["last"])
    label = ops.where(loop["lengths"] > 0, loop["label"] + again, never)
    # Where a prefix with one label more stands in the beam already, its paths are added there.
    is_parent = _parents(loop, exists)  # (B, K of the child, K of the parent)
    onward = ops.swapaxes(gather(longer, _to_all(loop["last"], beam_size)), 1, 2)
    # With a first value, since Keras refuses the maximum of a batch without rows.
    arriving = ops.max(ops.where(is_parent, onward, never), axis=2, initial=NEG_INF)  # (B, K)
    label = ops.logaddexp(label, arriving)
    there = ops.logical_and(is_parent[..., None], is_last[:, :, None])  # (B, K, K, V)
    longer = ops.where(ops.any(there, axis=1), never, longer)

    staying = ops.where(exists, ops.logaddexp(blank, label), never)
    flat = ops.reshape(longer, (-1, beam_size * size))
    _, index = ops.top_k(ops.concatenate([staying, flat], axis=1), beam_size)
    index = ops.cast(index, "int32")  # (B, K)
    stays = index < beam_size
    extended = ops.maximum(index - beam_size, 0)
    origin = ops.where(stays, index, extended // size)
    added = extended % size
    lengths = gather(loop["lengths"], origin)
    labels = gather(loop["labels"], origin)
    # Where the new label goes; nowhere if there is none.
    end = ops.where(stays, -1, lengths)
    places = ops.cumsum(ops.ones_like(labels), axis=2) - 1
    return {
        "blank": ops.where(stays, gather(blank, origin), never),
        "label": ops.where(stays, gather(label, origin), gather(flat, extended)),
        "last": ops.where(stays, gather(loop["last"], origin), added),
        "lengths": lengths + ops.cast(ops.logical_not(stays), "int32"),
        "labels": ops.where(ops.equal(places, end[..., None]), added[..., None], labels),
    }


def _parents(loop, exists):
    """Bool `(B, K, K)`, whether prefix j is prefix k with one label more."""
    lengths, labels = loop["lengths"], loop["labels"]
    places = ops.cumsum(ops.ones_like(labels), axis=2) - 1
    # A prefix without its last label. Beyond their ends labels are 0.
    shorter = ops.where(ops.equal(places, lengths[..., None] - 1), 0, labels)
    equal = ops.all(ops.equal(shorter[:, :, None], labels[:, None]), axis=3)
    one_more = ops.equal(lengths[:, :, None], lengths[:, None] + 1)
    both = ops.logical_and(exists[:, :, None], exists[:, None])
    return ops.logical_and(ops.logical_and(equal, one_more), both)


def _to_all(index, count):
    """`(B, K)` -> `(B, count, K)`."""
    return ops.repeat(index[:, None], count, axis=1)


def _log_probabilities(logits, mask):
    """In float32 at least, and the mask of real frames."""
    if len(logits.shape) != 3:
        raise ValueError(
            "The logits must be of shape (batch, frames, vocabulary), received "
            f"{tuple(logits.shape)}."
        )
    if keras.backend.standardize_dtype(logits.dtype) != "float64":
        logits = ops.cast(logits, "float32")
    if mask is None:
        # What `layers.CTCLogits` makes of padding.
        mask = ops.logical_not(ops.all(logits[..., 1:] - logits[..., :1] < -1e8, axis=-1))
    return ops.log_softmax(logits, axis=-1), ops.cast(mask, "bool")
