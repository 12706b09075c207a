"""Targets drawn at random as a model's probabilities say."""

from keras import ops

from keras_seq.backend import gather
from keras_seq.search.constraints import Constraints
from keras_seq.search.decode_loop import decode_loop, to_length
from keras_seq.search.hypotheses import NEG_INF, SearchResult
from keras_seq.search.length_normalization import length_penalty
from keras_seq.search.random_numbers import uniform_numbers
from keras_seq.search.sources import read_source
from keras_seq.search.top_k import top_k as largest

# Shape letters: B batch, S source steps, N samples, L steps, C capacity, V vocabulary,
# P prefix steps.


def sample(
    model,
    source,
    *,
    samples=1,
    seed=0,
    temperature=1.0,
    top_k=0,
    top_p=1.0,
    length_normalization="average",
    alpha=1.0,
    min_length=1,
    min_length_ratio=0.0,
    max_length=256,
    max_length_ratio=2.0,
    max_length_extra=10,
    forbidden_tokens=(0, 1, 2),
    forbidden_sequences=(),
    no_repeat_ngram_size=0,
    repetition_penalty=1.0,
    prefix=None,
    start_token=2,
    end_token=3,
):
    """Draws targets, each token by its probability given those before.

    What is drawn depends on the seed and the row's own source, on nothing
    else: not on the other rows, padding or how often this is called. So the
    same source has the same samples; another seed has others.

    Args:
        model: As for `beam_search`.
        source: As for `beam_search`.
        samples: Positive integer N, drawn independently for each row.
        seed: Integer from 0 to 2^32 - 1, or a scalar uint32 tensor.
        temperature: Float above 0 that log-probabilities are divided by.
        top_k: Integer: only the K likeliest tokens are drawn, 0 for no such rule.
        top_p: Float in (0, 1]: of these only the fewest likeliest whose probabilities
            come to so much, once divided by the temperature.
        length_normalization, alpha: For the scores, as for `beam_search`; they are of
            the model's probabilities before temperature, `top_k` and `top_p`.
        min_length, min_length_ratio, max_length, max_length_ratio, max_length_extra,
        forbidden_tokens, forbidden_sequences, no_repeat_ngram_size, repetition_penalty,
        prefix, start_token, end_token: As for `beam_search`.

    Returns:
        A `SearchResult` of N samples for each row, the best score first.

    Raises:
        ValueError: If an argument is out of range.

    Reference:
        `top_k`: Fan, Lewis and Dauphin, 2018, https://arxiv.org/abs/1805.04833;
        `top_p`: Holtzman et al., 2020, https://arxiv.org/abs/1904.09751
    """
    if samples < 1 or temperature <= 0 or top_k < 0 or not 0 < top_p <= 1:
        raise ValueError(
            "`samples` must be at least 1, `temperature` above 0, `top_k` 0 or more and `top_p` "
            f"above 0 and at most 1, received {samples}, {temperature}, {top_k} and {top_p}."
        )
    rules = Constraints(
        forbidden_tokens, forbidden_sequences, no_repeat_ngram_size, repetition_penalty, prefix
    )
    rules.check(end_token)
    read = read_source(
        model,
        source,
        min_length=min_length,
        min_length_ratio=min_length_ratio,
        max_length=max_length,
        max_length_ratio=max_length_ratio,
        max_length_extra=max_length_extra,
        prefix=prefix,
    )
    limits = read.limits
    # What a step asks of a row.
    fixed = {"least": limits.least, "most": limits.most, "keys": read.keys(seed)}
    if prefix is not None:
        fixed["prefix"] = ops.cast(prefix, "int32")

    def step(taken, out, loop, rows):
        ended, history = loop["ended"], loop["history"]
        log_probabilities = rules._replace(prefix=rows.get("prefix")).log_probabilities(
            ops.cast(out["logits"], "float32"),
            history,
            taken,
            (taken + 1 >= rows["least"], end_token),
        )
        drawn = _draw(
            log_probabilities / temperature,
            uniform_numbers(rows["keys"], samples, taken),
            top_k,
            top_p,
        )
        gained = ops.take_along_axis(log_probabilities, drawn[..., None], axis=-1)[..., 0]
        # Where every token is struck out, what there is so far is given up.
        lost = gained <= NEG_INF / 2
        drawn = ops.where(ended, 0, drawn)
        ends = ops.logical_or(ops.equal(drawn, end_token), taken + 1 >= rows["most"][:, None])
        now_ended = ops.logical_or(ended, ops.logical_or(ends, lost))
        now = ops.equal(ops.arange(ops.shape(history)[2]), taken)  # (C,)
        return {
            "token": drawn,
            "totals": ops.where(
                ended, loop["totals"], ops.maximum(loop["totals"] + gained, NEG_INF)
            ),
            "lengths": ops.where(ended, loop["lengths"], taken + 1),
            "ended": now_ended,
            "done": ops.all(now_ended, axis=-1),
            "history": ops.where(now, drawn[..., None], history),
            "state": out["state"],
        }

    batch = ops.shape(read.mask)[0]

    def begin(capacity):
        return {
            "token": ops.full((batch, samples), start_token, dtype="int32"),
            "totals": ops.zeros((batch, samples), dtype="float32"),
            "lengths": ops.zeros((batch, samples), dtype="int32"),
            "ended": ops.zeros((batch, samples), dtype="bool"),
            "done": ops.zeros((batch,), dtype="bool"),
            "history": ops.zeros((batch, samples, capacity), dtype="int32"),
        }

    def results(loop, rows):
        exists = loop["totals"] > NEG_INF / 2
        penalty = length_penalty(loop["lengths"], length_normalization, alpha)
        scores = ops.where(exists, loop["totals"] / penalty, NEG_INF)
        scores, index = ops.top_k(scores, samples)
        index = ops.cast(index, "int32")
        lengths = gather(ops.where(exists, loop["lengths"], 0), index)
        tokens = gather(loop["history"], index) * ops.cast(lengths > 0, "int32")[..., None]
        ends = ops.any(ops.equal(tokens, end_token), axis=-1)
        truncated = ops.logical_and(lengths > 0, ops.logical_not(ends))
        return SearchResult(to_length(tokens, limits.steps), lengths, scores, truncated)

    return decode_loop(
        model,
        read,
        samples,
        limits.steps,
        begin=begin,
        step=step,
        results=results,
        rows=fixed,
    )


def _draw(log_weights, uniform, top_k, top_p):
    """Ids `(B, N)`, one for each uniform number, by the inverse of the cumulated weights."""
    size = log_weights.shape[-1]
    if top_k == 0 and top_p == 1.0:
        return _inverse(ops.softmax(log_weights, axis=-1), uniform)
    # The likeliest first, equal ones by id.
    best, ids = largest(log_weights, min(top_k or size, size))
    if best.shape[-1] == 1:
        return ids[..., 0]
    weights = ops.softmax(best, axis=-1)
    if top_p < 1.0:
        before = ops.cumsum(weights, axis=-1) - weights
        weights = ops.where(before < top_p, weights, 0.0)
    chosen = _inverse(weights, uniform)
    return ops.take_along_axis(ids, chosen[..., None], axis=-1)[..., 0]


def _inverse(weights, uniform):
    """The first place whose cumulated weight exceeds the number's share of all."""
    cumulated = ops.cumsum(weights, axis=-1)
    threshold = uniform[..., None] * cumulated[..., -1:]
    passed = ops.sum(ops.cast(cumulated <= threshold, "int32"), axis=-1)
    # A number just below 1 may come to the whole sum in float32, behind the last place of any
    # weight; the last that has weight is where the sum first is what it is at the end.
    last = ops.sum(ops.cast(cumulated < cumulated[..., -1:], "int32"), axis=-1)
    return ops.minimum(passed, last)
