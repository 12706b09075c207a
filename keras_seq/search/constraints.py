"""What a target may not be, struck from the next tokens of each hypothesis."""

from typing import Any, NamedTuple

from keras import ops

from keras_seq.search.hypotheses import NEG_INF

# Shape letters: B batch, K beam, L steps, V vocabulary, P prefix steps.


class Constraints(NamedTuple):
    """Rules for targets. All but the repetition penalty strike tokens out and leave the others'
    probabilities as they are, so a score is that of forced decoding.

    Attributes:
        forbidden_tokens: Ids that are never generated.
        forbidden_sequences: Sequences of ids none of which a target holds.
        no_repeat_ngram_size: Integer n: no n tokens follow each other twice; 0 is no such rule.
        repetition_penalty: Float above 0. The logit of a token that the target already
            holds is divided by it where it is positive and multiplied where it is
            negative, before the softmax; 1 changes nothing.
        prefix: Int tensor `(B, P)`, padded with 0, that targets begin with; or None. It is
            not subject to the other rules.

    Reference:
        The repetition penalty is equation 2 of Keskar et al., "CTRL", 2019,
        https://arxiv.org/abs/1909.05858, which does not say what becomes of a negative logit.
    """

    forbidden_tokens: Any = (0, 1, 2)
    forbidden_sequences: Any = ()
    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0
    prefix: Any = None

    def check(self, end_token):
        """Raises `ValueError` for rules that no target can keep."""
        if end_token in self.forbidden_tokens or [end_token] in map(list, self.forbidden_sequences):
            raise ValueError(f"the end token, {end_token}, cannot be forbidden.")
        if not all(self.forbidden_sequences):
            raise ValueError("`forbidden_sequences` must not hold an empty sequence.")
        if self.no_repeat_ngram_size < 0 or self.repetition_penalty <= 0:
            raise ValueError(
                "`no_repeat_ngram_size` must be 0 or more and `repetition_penalty` above 0, "
                f"received {self.no_repeat_ngram_size} and {self.repetition_penalty}."
            )

    @property
    def depend_on_history(self):
        """Whether what is struck out depends on more than the length."""
        return bool(
            self.forbidden_sequences
            or self.no_repeat_ngram_size
            or self.repetition_penalty != 1.0
            or self.prefix is not None
        )

    def log_probabilities(self, logits, tokens, step, ending):
        """Log-probability of each next token, `NEG_INF` where it is struck out.

        Args:
            logits: Float32 tensor `(B, K, V)`.
            tokens: Int32 tensor `(B, K, L)`, the targets so far, then 0.
            step: Scalar int tensor: so many tokens there are.
            ending: Bool tensor `(B,)`: whether a target may end now; and the
                end token, as a pair.

        Returns:
            Float32 tensor `(B, K, V)`.
        """
        may_end, end_token = ending
        if self.repetition_penalty != 1.0:
            logits = _penalised(logits, tokens, self.repetition_penalty)
        ids = ops.arange(logits.shape[-1], dtype="int32")
        free = logits - ops.logsumexp(logits, axis=-1, keepdims=True)
        never = ops.any(ops.equal(ids[:, None], ops.array(_known(self.forbidden_tokens))), axis=-1)
        never = ops.logical_or(
            never, ops.logical_and(ops.equal(ids, end_token), ops.logical_not(may_end[:, None]))
        )  # (B, V)
        allowed = ops.where(never[:, None], NEG_INF, free)
        if self.no_repeat_ngram_size:
            allowed = _without_repeated(allowed, tokens, step, self.no_repeat_ngram_size)
        for sequence in self.forbidden_sequences:
            allowed = _without_sequence(allowed, tokens, step, tuple(sequence), ids)
        if self.prefix is None or not _width(self.prefix):
            return allowed
        last = ops.shape(self.prefix)[1] - 1
        forced = ops.take(self.prefix, ops.minimum(step, last), axis=1)  # (B,)
        forced = ops.where(step <= last, forced, 0)[:, None]
        prefixed = ops.where(ops.equal(ids, forced)[:, None], free, NEG_INF)
        return ops.where(ops.not_equal(forced, 0)[..., None], prefixed, allowed)


def _width(prefix):
    """0 if it is known to be, as a search without steps of a prefix."""
    return prefix.shape[1] != 0


def _known(tokens):
    # Ids are not negative, so this one is no token; an empty array would have no type.
    return [-1, *sorted(set(tokens))]


def _penalised(logits, tokens, penalty):
    picked = ops.take_along_axis(logits, tokens, axis=-1)  # (B, K, L)
    changed = ops.where(picked > 0, picked / penalty, picked * penalty)
    # Steps to come hold 0, which is no token, and is to stay as it is.
    return _put(logits, tokens, ops.where(ops.equal(tokens, 0), picked, changed))


def _without_repeated(allowed, tokens, step, size):
    """Strikes what would end an n-gram that the target holds already."""
    longest = ops.shape(tokens)[2]
    places = ops.arange(longest, dtype="int32")
    # Place j begins an n-gram that is whole, and so ends before this step.
    same = ops.broadcast_to(places + size <= step, ops.shape(tokens))
    for offset in range(size - 1):
        now = ops.take(tokens, ops.maximum(step - size + 1 + offset, 0), axis=2)  # (B, K)
        same = ops.logical_and(same, ops.equal(_shifted(tokens, offset), now[..., None]))
    last = ops.where(same, _shifted(tokens, size - 1), 0)
    # Where nothing is struck, token 0, padding, is struck in its place.
    return _put(allowed, last, ops.full(ops.shape(last), NEG_INF))


def _without_sequence(allowed, tokens, step, sequence, ids):
    *before, last = sequence
    same = ops.broadcast_to(step >= len(before), ops.shape(tokens)[:2])
    for offset, token in enumerate(before):
        now = ops.take(tokens, ops.maximum(step - len(before) + offset, 0), axis=2)
        same = ops.logical_and(same, ops.equal(now, token))
    return ops.where(ops.logical_and(same[..., None], ops.equal(ids, last)), NEG_INF, allowed)


def _shifted(tokens, offset):
    """Token j + offset at place j, 0 behind the last."""
    return ops.pad(tokens, [[0, 0], [0, 0], [0, offset]])[..., offset:]


def _put(values, index, updates):
    """`values` `(B, K, V)` with `updates` `(B, K, L)` at `index` `(B, K, L)` of the last axis."""
    batch, beam, size = ops.shape(values)
    rows = ops.reshape(ops.arange(batch * beam, dtype="int32"), (batch, beam, 1))
    places = ops.reshape(rows * size + index, (-1, 1))
    flat = ops.scatter_update(
        ops.reshape(values, (-1,)), places, ops.reshape(ops.cast(updates, values.dtype), (-1,))
    )
    return ops.reshape(flat, (batch, beam, size))
