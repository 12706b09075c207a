"""Beam search over any model with an encoder and a decoder step."""

import math
from typing import Any, NamedTuple

from keras import ops

from keras_seq.backend import gather
from keras_seq.search.candidates import best_of_log_probabilities, best_of_logits
from keras_seq.search.constraints import Constraints
from keras_seq.search.coverage import coverage_score
from keras_seq.search.hypotheses import (
    NEVER,
    best_of,
    merge_finished,
    reorder_state,
)
from keras_seq.search.length_normalization import length_penalty
from keras_seq.search.limits import length_limits
from keras_seq.search.steps import Steps

# Shape letters: B batch, S source steps, K beam, N n-best, L steps, V vocabulary, P prefix steps.


class SearchRecord(NamedTuple):
    """Every candidate that a beam search looked at: K of a row at each step, best first.

    Attributes:
        tokens: Int32 `(B, L, K)`.
        parents: Int32 `(B, L, K)`; the place of the hypothesis that it continues.
        totals: Float32 `(B, L, K)`; the summed log-probability, `NEVER` for none.
        kept: Bool `(B, L, K)`; False where frozen hypotheses left it no place.
        places: Int32 `(B, L, K)`; the candidate that holds each place at the next step.
        steps: Int32 `(B,)`; the steps that the row took.
    """

    tokens: Any
    parents: Any
    totals: Any
    kept: Any
    places: Any
    steps: Any


def beam_search(
    model,
    source,
    *,
    beam_size=5,
    n_best=1,
    patience=1.0,
    length_normalization="average",
    alpha=1.0,
    coverage_penalty=0.0,
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
    record=False,
):
    """Finds the targets that a model scores highest, by beam search.

        score(y) = log P(y | x) / T^alpha + cp(x, y),  T = tokens of y with the end token

    The beam has K places. A hypothesis that ends keeps its place, frozen, for
    good; at each step the other places go to the best continuations of the
    live hypotheses, by summed log-probability. A row is done when every place
    is frozen, or no live hypothesis can still beat the `n_best`-th finished
    one. With `beam_size=1` this is greedy search; with a beam as wide as the
    space it is exhaustive. Ties go to the earlier hypothesis, then to the
    lower id.

    Runs on any backend, eager or compiled. Works on models with the contract
    of `keras_seq.models`: `encoder`, `initial_state`, `decoder_step`,
    `extended_state`. Nothing of the memory is copied for a hypothesis.

    Args:
        model: The model, or an `Ensemble`.
        source: Int tensor `(B, S)`, padded with 0, with its end tokens.
        beam_size: Positive integer K.
        n_best: Positive integer N, at most K.
        patience: Float above 0. A row is done when `patience * K` hypotheses have
            ended, at the latest; above 1, the first `(patience - 1) K` of them
            leave their places to live ones.
        length_normalization: `"average"`, `"gnmt"` or `"none"`, see
            `length_penalty`.
        alpha: Float, 0 or more, the exponent of the normalisation.
        coverage_penalty: Float, 0 or more, the factor of `coverage_score`; above 0
            the model must offer `attending_step`.
        min_length: Fewest tokens of a target, the end token included.
        min_length_ratio: A row's targets have this many times its own source
            length, at least, as far as its limit allows.
        max_length: Most tokens of a target, the end token included.
        max_length_ratio: A row's limit is `max_length_ratio` times its own
            source length, plus `max_length_extra`, and at most `max_length`.
            It does not depend on the other rows.
        max_length_extra: See above; at least 1. A prefix is followed by so many
            tokens at least, up to `max_length`.
        forbidden_tokens: Ids that are never generated. They keep their share
            of the probability, so scores are those of forced decoding.
        forbidden_sequences: Sequences of ids that no target holds.
        no_repeat_ngram_size: No sequence of so many tokens comes twice; 0 for no such rule.
        repetition_penalty: See `Constraints`; scores are then no longer those of
            forced decoding.
        prefix: Int tensor `(B, P)`, padded with 0: the tokens that each row's targets begin
            with, whatever the other rules say; they count in scores and lengths.
        start_token: Id that starts every target.
        end_token: Id that ends a target.
        record: Whether a `SearchRecord` is returned, too.

    Returns:
        A `SearchResult`; with `record` a pair of it and a `SearchRecord`.

    Raises:
        ValueError: If an argument is out of range.

    Reference:
        Patience: Kasai et al., "A Call for Clarity in Beam Search", 2024,
        https://arxiv.org/abs/2204.05424. The coverage penalty: Wu et al.,
        "Google's Neural Machine Translation System", 2016, section 7,
        https://arxiv.org/abs/1609.08144
    """
    if beam_size < 1 or not 1 <= n_best <= beam_size:
        raise ValueError(
            "`beam_size` must be at least 1 and `n_best` between 1 and `beam_size`, "
            f"received beam_size={beam_size}, n_best={n_best}."
        )
    if coverage_penalty < 0:
        raise ValueError(f"`coverage_penalty` must be 0 or more, received {coverage_penalty!r}.")
    # So many may end; a tiny patience still waits for what is asked for.
    # Rounded first, for 0.28 * 25 is a little more than 7.
    room = max(math.ceil(round(patience * beam_size, 6)), n_best) if patience > 0 else 0
    spare = max(room - beam_size, 0)
    if not room:
        raise ValueError(f"`patience` must be above 0, received {patience!r}.")
    rules = Constraints(
        forbidden_tokens, forbidden_sequences, no_repeat_ngram_size, repetition_penalty, prefix
    )
    rules.check(end_token)
    source = ops.cast(source, "int32")
    mask = ops.not_equal(source, 0)
    limits = length_limits(
        source,
        min_length=min_length,
        min_length_ratio=min_length_ratio,
        max_length=max_length,
        max_length_ratio=max_length_ratio,
        max_length_extra=max_length_extra,
        prefix=prefix,
    )
    always_may_end = min_length == 1 and min_length_ratio == 0
    steps = Steps(model, source, beam_size, limits.steps, attending=coverage_penalty > 0)
    step_index = ops.arange(limits.steps)

    def penalty(lengths):
        return length_penalty(lengths, length_normalization, alpha)

    def covered(attention):
        return coverage_score(attention, mask, coverage_penalty) if coverage_penalty else 0.0

    def continuations(loop, logits):
        may_end = None if always_may_end else loop["step"] + 1 >= limits.least
        if not rules.depend_on_history:
            return best_of_logits(loop["scores"], logits, forbidden_tokens, may_end, end_token)
        may_end = loop["step"] + 1 >= limits.least
        return best_of_log_probabilities(
            loop["scores"],
            rules.log_probabilities(logits, loop["tokens"], loop["step"], (may_end, end_token)),
        )

    def body(loop):
        step, done = loop["step"], loop["done"]
        out, capacity = steps.take(loop["token"], step, loop["state"], loop["capacity"])
        totals, tokens, parents = continuations(loop, ops.cast(out["logits"], "float32"))
        # Places that finished hypotheses hold are not given to continuations.
        free = beam_size - ops.maximum(loop["count"] - spare, 0)
        kept = ops.logical_and(ops.arange(beam_size) < free[:, None], totals > NEVER / 2)
        ended = ops.equal(tokens, end_token)  # (B, K)
        histories = ops.where(
            ops.equal(step_index, step), tokens[..., None], gather(loop["tokens"], parents)
        )  # (B, K, L)
        attention = None
        if coverage_penalty:
            attention = gather(loop["attention"] + out["attention"], parents)  # (B, K, S)

        leaving = ops.logical_and(kept, ended)
        finished = merge_finished(
            loop["finished"],
            {
                "scores": ops.where(
                    leaving, totals / penalty(step + 1) + covered(attention), NEVER
                ),
                "tokens": histories,
                "lengths": ops.where(leaving, step + 1, 0),
            },
        )
        count = loop["count"] + ops.sum(ops.cast(leaving, "int32"), axis=1)

        staying = ops.logical_and(kept, ops.logical_not(ended))
        live_scores, chosen = ops.top_k(ops.where(staying, totals, NEVER), beam_size)
        chosen = ops.cast(chosen, "int32")
        # A later end can at best keep the sum it has, divided by the largest penalty, and lose
        # nothing to coverage. Where none lives that bound is below any finished score.
        best_possible = live_scores[:, 0] / penalty(limits.most)
        now_done = ops.logical_or(
            finished["scores"][:, n_best - 1] >= best_possible,
            ops.logical_or(
                ops.logical_or(live_scores[:, 0] <= NEVER / 2, count >= room),
                step + 1 >= limits.most,
            ),
        )
        keep = done[:, None]

        def unless_done(before, after):
            return ops.where(
                ops.reshape(done, (-1,) + (1,) * (len(after.shape) - 1)), before, after
            )

        following = {
            "step": step + 1,
            "capacity": capacity,
            "token": gather(tokens, chosen),
            "scores": ops.where(keep, loop["scores"], live_scores),
            "tokens": unless_done(loop["tokens"], gather(histories, chosen)),
            "finished": {
                name: unless_done(loop["finished"][name], value) for name, value in finished.items()
            },
            "count": ops.where(done, loop["count"], count),
            "done": ops.logical_or(done, now_done),
            "state": reorder_state(out["state"], gather(parents, chosen)),
        }
        if coverage_penalty:
            following["attention"] = unless_done(loop["attention"], gather(attention, chosen))
        if record:
            now = {
                "tokens": tokens, "parents": parents, "totals": totals, "kept": kept,
                "places": chosen,
            }  # fmt: skip
            following["record"] = {
                name: ops.where(
                    ops.logical_and(ops.equal(step_index, step)[:, None], ~done[:, None, None]),
                    now[name][:, None],
                    loop["record"][name],
                )
                for name in now
            }
            following["taken"] = loop["taken"] + ops.cast(ops.logical_not(done), "int32")
        return following

    def unfinished(loop):
        return ops.logical_and(loop["step"] < limits.steps, ops.logical_not(ops.all(loop["done"])))

    batch, width = ops.shape(source)
    # All hypotheses start alike, so only the first may live: the others would be its copies.
    first_scores = ops.where(ops.arange(beam_size) == 0, 0.0, NEVER)
    loop = {
        "step": ops.zeros((), dtype="int32"),
        "token": ops.full((batch, beam_size), start_token, dtype="int32"),
        "scores": ops.broadcast_to(first_scores[None], (batch, beam_size)),
        "tokens": ops.zeros((batch, beam_size, limits.steps), dtype="int32"),
        "finished": {
            "scores": ops.full((batch, n_best), NEVER, dtype="float32"),
            "tokens": ops.zeros((batch, n_best, limits.steps), dtype="int32"),
            "lengths": ops.zeros((batch, n_best), dtype="int32"),
        },
        "count": ops.zeros((batch,), dtype="int32"),
        "done": ops.zeros((batch,), dtype="bool"),
        "capacity": steps.capacity,
        "state": steps.first_state,
    }
    if coverage_penalty:
        loop["attention"] = ops.zeros((batch, beam_size, width), dtype="float32")
    if record:
        shape = (batch, limits.steps, beam_size)
        loop["record"] = {
            "tokens": ops.zeros(shape, dtype="int32"),
            "parents": ops.zeros(shape, dtype="int32"),
            "totals": ops.full(shape, NEVER, dtype="float32"),
            "kept": ops.zeros(shape, dtype="bool"),
            "places": ops.zeros(shape, dtype="int32"),
        }
        loop["taken"] = ops.zeros((batch,), dtype="int32")
    (loop,) = ops.while_loop(lambda loop: unfinished(loop), lambda loop: (body(loop),), (loop,))
    lasting = loop["scores"] > NEVER / 2
    cut = loop["scores"] / penalty(limits.most)[:, None] + covered(loop.get("attention"))
    live = {
        "scores": ops.where(lasting, cut, NEVER),
        "tokens": loop["tokens"],
        "lengths": ops.where(lasting, limits.most[:, None], 0),
    }
    result = best_of(loop["finished"], live)
    if not record:
        return result
    return result, SearchRecord(**loop["record"], steps=loop["taken"])
