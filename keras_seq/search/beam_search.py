"""Beam search over any model with an encoder and a decoder step."""

import math
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_seq.backend import gather
from keras_seq.search.candidates import best_of_log_probabilities, best_of_logits
from keras_seq.search.constraints import Constraints
from keras_seq.search.coverage import coverage_score
from keras_seq.search.decode_loop import decode_loop, to_length
from keras_seq.search.hypotheses import (
    NEG_INF,
    best_of,
    merge_finished,
    reorder_state,
)
from keras_seq.search.length_normalization import length_penalty
from keras_seq.search.sources import read_source

# Shape letters: B batch, S source steps, K beam, N n-best, L steps, C capacity, V vocabulary,
# P prefix steps, W candidates of a step.


class SearchRecord(NamedTuple):
    """Every candidate that a beam search looked at: W of a row at each step, best first.

    W is the beam K, and twice that with a patience above 1.

    Attributes:
        tokens: Int32 `(B, L, W)`.
        parents: Int32 `(B, L, W)`; the place of the hypothesis that it continues.
        totals: Float32 `(B, L, W)`; the summed log-probability, `NEG_INF` for none.
        kept: Bool `(B, L, W)`; False where others left it no place.
        places: Int32 `(B, L, K)`; the candidate that holds each place at the next step.
        steps: Int32 `(B,)`; the steps that the row took; what follows them is 0.
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
    `grow_state`. Nothing of the memory is copied for a hypothesis.

    Args:
        model: The model, or an `Ensemble`.
        source: Int tensor `(B, S)`, padded with 0, with its end tokens; or what else the
            model's encoder reads, such as images `(B, height, width, channels)`.
        beam_size: Positive integer K.
        n_best: Positive integer N, at most K.
        patience: Float above 0. A row is done when `patience * K` hypotheses have
            ended, at the latest; above 1, the first `(patience - 1) K` of them
            leave their places to the next best live ones.
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
            It does not depend on the other rows. Ratios and extra are of sources that
            are ids: for others `max_length` is the limit.
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
    # Where places are left to others: those that end are at most as many as the beam.
    wanted = 2 * beam_size if spare else beam_size
    if not room:
        raise ValueError(f"`patience` must be above 0, received {patience!r}.")
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
    always_may_end = min_length == 1 and min_length_ratio == 0
    # What a step asks of a row.
    rows = {"most": limits.most}
    if not always_may_end or rules.depend_on_history:
        rows["least"] = limits.least
    if prefix is not None:
        rows["prefix"] = ops.cast(prefix, "int32")
    if coverage_penalty:
        rows["mask"] = read.mask

    def penalty(lengths):
        return length_penalty(lengths, length_normalization, alpha)

    def covered(attention, rows):
        return (
            coverage_score(attention, rows["mask"], coverage_penalty) if coverage_penalty else 0.0
        )

    def continuations(taken, loop, rows, logits):
        may_end = taken + 1 >= rows["least"] if "least" in rows else None
        if not rules.depend_on_history:
            return best_of_logits(
                loop["scores"], logits, wanted, forbidden_tokens, may_end, end_token
            )
        return best_of_log_probabilities(
            loop["scores"],
            rules._replace(prefix=rows.get("prefix")).log_probabilities(
                logits, loop["history"]["tokens"], taken, (may_end, end_token)
            ),
            wanted,
        )

    def free_places(count):
        return beam_size - ops.maximum(count - spare, 0)

    def step(taken, out, loop, rows):
        done = loop["done"]
        before = loop["history"]
        now = ops.equal(ops.arange(ops.shape(before["tokens"])[2]), taken)  # (C,)
        totals, tokens, parents = continuations(
            taken, loop, rows, ops.cast(out["logits"], "float32")
        )
        exists = totals > NEG_INF / 2
        ended = ops.equal(tokens, end_token)  # (B, W)
        lives = ops.logical_and(exists, ops.logical_not(ended))
        # Places that finished hypotheses hold are not given to continuations.
        first = ops.arange(totals.shape[1]) < free_places(loop["count"])[:, None]
        leaving = ops.logical_and(ops.logical_and(exists, ended), first)
        count = loop["count"] + ops.sum(ops.cast(leaving, "int32"), axis=1)
        staying = ops.logical_and(lives, first)
        if spare:
            numbers = ops.cumsum(ops.cast(lives, "int32"), axis=1)
            staying = ops.logical_and(lives, numbers <= free_places(count)[:, None])
        histories = ops.where(
            now, tokens[..., None], gather(before["tokens"], parents)
        )  # (B, W, C)
        attention = None
        if coverage_penalty:
            attention = gather(loop["attention"] + out["attention"], parents)  # (B, W, S)

        finished = merge_finished(
            {**loop["finished"], "tokens": before["finished"]},
            {
                "scores": ops.where(
                    leaving, totals / penalty(taken + 1) + covered(attention, rows), NEG_INF
                ),
                "tokens": histories,
                "lengths": ops.where(leaving, taken + 1, 0),
            },
        )
        live_scores, chosen = ops.top_k(ops.where(staying, totals, NEG_INF), beam_size)
        chosen = ops.cast(chosen, "int32")
        # A later end can at best keep the sum it has, divided by the largest penalty, and lose
        # nothing to coverage. Where none lives that bound is below any finished score.
        best_possible = live_scores[:, 0] / penalty(rows["most"])
        now_done = ops.logical_or(
            finished["scores"][:, n_best - 1] >= best_possible,
            ops.logical_or(
                ops.logical_or(live_scores[:, 0] <= NEG_INF / 2, count >= room),
                taken + 1 >= rows["most"],
            ),
        )
        history = {
            "tokens": gather(histories, chosen),
            "finished": finished.pop("tokens"),
        }
        if record:
            history["record"] = {
                name: ops.where(now, value[..., None], before["record"][name])
                for name, value in {
                    "tokens": tokens, "parents": parents, "totals": totals,
                    "kept": ops.logical_or(leaving, staying), "places": chosen,
                }.items()
            }  # fmt: skip
        following = {
            "scores": live_scores,
            "finished": finished,
            "count": count,
            "history": history,
        }
        if coverage_penalty:
            following["attention"] = gather(attention, chosen)
        if record:
            following["steps"] = loop["steps"] + 1
        return {
            **keras.tree.map_structure(
                lambda old, new: ops.where(
                    ops.reshape(done, (-1,) + (1,) * (len(new.shape) - 1)), old, new
                ),
                {name: loop[name] for name in following},
                following,
            ),
            "done": ops.logical_or(done, now_done),
            # Nobody asks for these of a row that is done.
            "token": gather(tokens, chosen),
            "state": reorder_state(out["state"], gather(parents, chosen)),
        }

    batch, width = ops.shape(read.mask)

    def begin(capacity):
        # All hypotheses start alike, so only the first may live: the others would be its copies.
        first_scores = ops.where(ops.arange(beam_size) == 0, 0.0, NEG_INF)
        loop = {
            "token": ops.full((batch, beam_size), start_token, dtype="int32"),
            "scores": ops.broadcast_to(first_scores[None], (batch, beam_size)),
            "finished": {
                "scores": ops.full((batch, n_best), NEG_INF, dtype="float32"),
                "lengths": ops.zeros((batch, n_best), dtype="int32"),
            },
            "count": ops.zeros((batch,), dtype="int32"),
            "done": ops.zeros((batch,), dtype="bool"),
            "history": {
                "tokens": ops.zeros((batch, beam_size, capacity), dtype="int32"),
                "finished": ops.zeros((batch, n_best, capacity), dtype="int32"),
            },
        }
        if coverage_penalty:
            loop["attention"] = ops.zeros((batch, beam_size, width), dtype="float32")
        if record:
            loop["steps"] = ops.zeros((batch,), dtype="int32")
            loop["history"]["record"] = {
                name: ops.zeros((batch, places, capacity), dtype=dtype)
                for name, dtype, places in (
                    ("tokens", "int32", wanted),
                    ("parents", "int32", wanted),
                    ("totals", "float32", wanted),
                    ("kept", "bool", wanted),
                    ("places", "int32", beam_size),
                )
            }
        return loop

    def results(loop, rows):
        lasting = loop["scores"] > NEG_INF / 2
        cut = loop["scores"] / penalty(rows["most"])[:, None] + covered(loop.get("attention"), rows)
        found = best_of(
            {**loop["finished"], "tokens": loop["history"]["finished"]},
            {
                "scores": ops.where(lasting, cut, NEG_INF),
                "tokens": loop["history"]["tokens"],
                "lengths": ops.where(lasting, rows["most"][:, None], 0),
            },
        )
        found = found._replace(tokens=to_length(found.tokens, limits.steps))
        if not record:
            return found
        kept = keras.tree.map_structure(
            lambda history: ops.transpose(to_length(history, limits.steps), (0, 2, 1)),
            loop["history"]["record"],
        )
        return found, SearchRecord(**kept, steps=loop["steps"])

    return decode_loop(
        model,
        read,
        beam_size,
        limits.steps,
        begin=begin,
        step=step,
        results=results,
        rows=rows,
        attending=coverage_penalty > 0,
    )
