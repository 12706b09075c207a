"""Constraints on the next token of each hypothesis."""

from typing import Any

from keras import ops

from keras_seq import backend
from keras_seq.search.config import SearchConfig
from keras_seq.search.hypotheses import NEG_INF

# Shape letters: B batch, K beam, L steps, V vocabulary, P prefix steps.


def needs_history(config: SearchConfig, prefix: Any) -> bool:
    """Returns True if the constraints depend on more than the length of a hypothesis."""
    return bool(
        config.forbidden_sequences
        or config.no_repeat_ngram_size
        or config.repetition_penalty != 1.0
        or prefix is not None
    )


def constrained_log_probabilities(
    logits: Any, tokens: Any, step: Any, may_end: Any, prefix: Any, config: SearchConfig
) -> Any:
    """Log-probability `(B, K, V)` of each next token, `NEG_INF` for tokens that are not allowed.

    Only the repetition penalty changes the probabilities of allowed tokens. Without it, scores
    equal forced decoding. `tokens` `(B, K, L)` are the targets so far, followed by 0, and `step` is
    their length. `may_end` `(B,)` is True where the end token is allowed. Targets begin with
    `prefix` `(B, P)`, padded with 0. No other constraint applies to the prefix.
    """
    if config.repetition_penalty != 1.0:
        logits = _penalized(logits, tokens, config.repetition_penalty)
    ids = ops.arange(logits.shape[-1], dtype="int32")
    free = logits - ops.logsumexp(logits, axis=-1, keepdims=True)
    # The unused id -1 gives the array an integer type even if no token is forbidden.
    forbidden = ops.array([-1, *sorted(set(config.forbidden_tokens))])
    is_forbidden = ops.any(ops.equal(ids[:, None], forbidden), axis=-1)
    is_early_end = ops.logical_and(
        ops.equal(ids, config.end_token), ops.logical_not(may_end[:, None])
    )
    is_forbidden = ops.logical_or(is_forbidden, is_early_end)  # (B, V)
    allowed = ops.where(is_forbidden[:, None], NEG_INF, free)
    if config.no_repeat_ngram_size:
        allowed = _without_repeated_ngrams(allowed, tokens, step, config.no_repeat_ngram_size)
    for sequence in config.forbidden_sequences:
        allowed = _without_sequence(allowed, tokens, step, tuple(sequence), ids)
    if prefix is None or prefix.shape[1] == 0:
        return allowed
    last = backend.shape(prefix)[1] - 1
    forced = ops.take(prefix, ops.minimum(step, last), axis=1)  # (B,)
    forced = ops.where(step <= last, forced, 0)[:, None]
    prefixed = ops.where(ops.equal(ids, forced)[:, None], free, NEG_INF)
    return ops.where(ops.not_equal(forced, 0)[..., None], prefixed, allowed)


def _penalized(logits: Any, tokens: Any, penalty: float) -> Any:
    penalized = ops.where(logits > 0, logits / penalty, logits * penalty)
    return ops.where(_occurring(tokens, logits), penalized, logits)


def _without_repeated_ngrams(allowed: Any, tokens: Any, step: Any, size: int) -> Any:
    """Forbids the tokens that would complete an n-gram that the target already contains."""
    positions = ops.arange(backend.shape(tokens)[2], dtype="int32")
    # Only n-grams that end before the current step are complete.
    matches = ops.broadcast_to(positions + size <= step, backend.shape(tokens))
    for offset in range(size - 1):
        current = ops.take(tokens, ops.maximum(step - size + 1 + offset, 0), axis=2)  # (B, K)
        matches = ops.logical_and(matches, ops.equal(_shifted(tokens, offset), current[..., None]))
    last = ops.where(matches, _shifted(tokens, size - 1), 0)
    return ops.where(_occurring(last, allowed), NEG_INF, allowed)


def _without_sequence(
    allowed: Any, tokens: Any, step: Any, sequence: tuple[int, ...], ids: Any
) -> Any:
    """Forbids the token that would complete a forbidden sequence."""
    *before, last = sequence
    matches = ops.broadcast_to(step >= len(before), backend.shape(tokens)[:2])
    for offset, token in enumerate(before):
        current = ops.take(tokens, ops.maximum(step - len(before) + offset, 0), axis=2)
        matches = ops.logical_and(matches, ops.equal(current, token))
    return ops.where(ops.logical_and(matches[..., None], ops.equal(ids, last)), NEG_INF, allowed)


def _shifted(tokens: Any, offset: int) -> Any:
    """Returns `tokens[j + offset]` at position j, and 0 past the end."""
    return ops.pad(tokens, [[0, 0], [0, 0], [0, offset]])[..., offset:]


def _occurring(tokens: Any, values: Any) -> Any:
    """Tests which ids except 0 are in `tokens` `(B, K, L)`; the shape is that of `values`."""
    batch, beam, size = backend.shape(values)
    rows = ops.reshape(ops.arange(batch * beam, dtype="int32"), (batch, beam, 1))
    index = ops.reshape(rows * size + tokens, (-1, 1))
    # Converters of graphs add the updates of equal indices, so only the sign of a mark counts.
    marks = ops.scatter_update(
        ops.zeros((batch * beam * size,)), index, ops.ones_like(index[:, 0], dtype="float32")
    )
    is_marked = ops.reshape(marks > 0, (batch, beam, size))
    return ops.logical_and(is_marked, ops.arange(size) > 0)
