"""Beam search over any model with an encoder and a decoder step."""

import math
from typing import Any

from keras import ops

from keras_seq import backend
from keras_seq.backend import gather
from keras_seq.search.beam_record import empty_record, finish_record, record_step
from keras_seq.search.candidates import best_of_log_probabilities, best_of_logits
from keras_seq.search.config import SearchConfig, make_config
from keras_seq.search.constraints import constrained_log_probabilities, needs_history
from keras_seq.search.decode_loop import decode_loop, to_length
from keras_seq.search.hypotheses import (
    NEG_INF,
    best_of,
    exists,
    merge_finished,
    reorder_state,
    select_rows,
)
from keras_seq.search.scores import coverage_score, length_penalty
from keras_seq.search.sources import Source, read_source

# Shape letters: B batch, S source steps, K beam, N n-best, C capacity, V vocabulary,
# P prefix steps, W candidates per step.


def beam_search(
    model: Any,
    source: Any,
    config: SearchConfig | None = None,
    *,
    prefix: Any = None,
    record: bool = False,
    **options: Any,
) -> Any:
    """Finds the targets with the highest scores by beam search.

        score(y) = log P(y | x) / T^alpha + cp(x, y),  T = tokens of y with the end token

    The beam of a row has K slots. A hypothesis that ends keeps its slot until the end of the
    search. At each step, the best continuations of the live hypotheses, by summed
    log-probability, take the other slots. A row is done when finished hypotheses hold all slots,
    or no live hypothesis can still beat the N-th best finished one. With `beam_size=1` this is
    greedy search; with a beam as wide as the search space, it is exhaustive. Ties go to the
    earlier hypothesis, then to the lower id.

    The search runs eagerly or compiled, on every backend, with any model that has `encoder`,
    `initial_state`, `decoder_step` and `grow_state`, as the models of `keras_seq.models` do. The
    memory is not copied per hypothesis.

    Args:
        model: The model, or an `Ensemble`.
        source: Int tensor `(B, S)`, padded with 0, each row with its end token; or any other
            input of the model's encoder, such as images `(B, height, width, channels)`.
        config: The options of the search, by default `SearchConfig()`.
        prefix: Int tensor `(B, P)`, padded with 0: the tokens that the targets of each row begin
            with. A prefix counts in scores and lengths, and is exempt from all constraints.
        record: If True, also return a `SearchRecord`.
        **options: Fields of `SearchConfig` that override `config`.

    Returns:
        A `SearchResult`; with `record=True`, a pair of `SearchResult` and `SearchRecord`.

    Raises:
        ValueError: If an option is out of range.

    Example:

    >>> model = Transformer(9, 9, 1, 1, units=8, feedforward_units=8, num_heads=2)
    >>> result = beam_search(model, ops.array([[5, 6, 3]]), beam_size=4, n_best=2)
    >>> tuple(result.scores.shape)
    (1, 2)

    Reference:
        Coverage penalty and `"gnmt"`: Wu et al., "Google's Neural Machine Translation System",
        2016, section 7, https://arxiv.org/abs/1609.08144
    """
    config = make_config(config, options)
    if config.n_best > config.beam_size:
        raise ValueError(
            f"`n_best` must be at most `beam_size`, {config.beam_size}, received {config.n_best}."
        )
    with backend.without_gradients():
        encoded = read_source(model, source, config, prefix)
        return decode_loop(model, encoded, BeamSearch(encoded, config, record))


class BeamSearch:
    """The beam search algorithm: initial state, step and results; see `decode_loop.Search`."""

    def __init__(self, source: Source, config: SearchConfig, record: bool) -> None:
        self._config, self._record = config, record
        self._batch, self._source_length = backend.shape(source.mask)
        self._max_steps = source.limits.steps
        self.num_hypotheses = config.beam_size
        self.needs_attention = config.coverage_penalty > 0
        # Rounds the product, because 0.28 * 25 is slightly above 7 in floating point.
        num_ends = math.ceil(round(config.patience * config.beam_size, 6))
        self._max_finished = max(num_ends, config.n_best)
        # Number of finished hypotheses that hold no beam slot.
        self._num_slotless = max(self._max_finished - config.beam_size, 0)
        # At most K candidates end, so the best 2 K candidates include the K best that stay live.
        self._num_candidates = config.beam_size * (2 if self._num_slotless else 1)
        self._needs_history = needs_history(config, source.prefix)
        has_minimum = config.min_length > 1 or config.min_length_ratio > 0
        self.rows = {"max_length": source.limits.max_length}
        if has_minimum or self._needs_history:
            self.rows["min_length"] = source.limits.min_length
        if source.prefix is not None:
            self.rows["prefix"] = source.prefix
        if self.needs_attention:
            self.rows["mask"] = source.mask

    def init_state(self, capacity: Any) -> dict[str, Any]:
        beam, n_best, batch = self._config.beam_size, self._config.n_best, self._batch
        # All hypotheses are equal at first. To avoid duplicates, only the first hypothesis is live.
        scores = ops.where(ops.arange(beam) == 0, 0.0, NEG_INF)
        state: dict[str, Any] = {
            "token": ops.full((batch, beam), self._config.start_token, dtype="int32"),
            "scores": ops.broadcast_to(scores[None], (batch, beam)),
            "finished": {
                "scores": ops.full((batch, n_best), NEG_INF, dtype="float32"),
                "lengths": ops.zeros((batch, n_best), dtype="int32"),
            },
            "num_finished": ops.zeros((batch,), dtype="int32"),
            "done": ops.zeros((batch,), dtype="bool"),
            "history": {
                "tokens": ops.zeros((batch, beam, capacity), dtype="int32"),
                "finished": ops.zeros((batch, n_best, capacity), dtype="int32"),
            },
        }
        if self.needs_attention:
            state["attention"] = ops.zeros((batch, beam, self._source_length), dtype="float32")
        if self._record:
            state["steps"] = ops.zeros((batch,), dtype="int32")
            state["history"]["record"] = empty_record(batch, beam, self._num_candidates, capacity)
        return state

    def step(
        self, num_steps: Any, outputs: dict[str, Any], state: dict[str, Any], rows: dict[str, Any]
    ) -> dict[str, Any]:
        length, history = num_steps + 1, state["history"]
        is_now = ops.equal(ops.arange(backend.shape(history["tokens"])[2]), num_steps)  # (C,)
        logits = ops.cast(outputs["logits"], "float32")
        totals, tokens, parents = self._best_continuations(num_steps, logits, state, rows)  # (B, W)
        ending, staying, num_finished = self._survivors(totals, tokens, state["num_finished"])
        targets = ops.where(
            is_now, tokens[..., None], gather(history["tokens"], parents)
        )  # (B, W, C)
        attention = None
        if self.needs_attention:
            attention = gather(state["attention"] + outputs["attention"], parents)  # (B, W, S)
        finished = merge_finished(
            {**state["finished"], "tokens": history["finished"]},
            {
                "scores": ops.where(ending, self._score(totals, length, attention, rows), NEG_INF),
                "tokens": targets,
                "lengths": ops.where(ending, length, 0),
            },
        )
        live_scores, slots = backend.top_k(ops.where(staying, totals, NEG_INF), self.num_hypotheses)
        is_done = self._is_done(length, live_scores[:, 0], finished["scores"], num_finished, rows)
        new_history = {"tokens": gather(targets, slots), "finished": finished.pop("tokens")}
        new = {
            "scores": live_scores,
            "finished": finished,
            "num_finished": num_finished,
            "history": new_history,
        }
        if self.needs_attention:
            new["attention"] = gather(attention, slots)
        if self._record:
            new["steps"] = state["steps"] + 1
            new_history["record"] = record_step(
                history["record"],
                is_now,
                tokens=tokens,
                parents=parents,
                totals=totals,
                survives=ops.logical_or(ending, staying),
                slots=slots,
            )
        return {
            **select_rows(state["done"], {name: state[name] for name in new}, new),
            "done": ops.logical_or(state["done"], is_done),
            # Nothing reads these entries in rows that are done, so they may change there.
            "token": gather(tokens, slots),
            "decoder_state": reorder_state(outputs["state"], gather(parents, slots)),
        }

    def results(self, state: dict[str, Any], rows: dict[str, Any]) -> Any:
        max_length = rows["max_length"][:, None]
        is_live = exists(state["scores"])
        scores = self._score(state["scores"], max_length, state.get("attention"), rows)
        result = best_of(
            {**state["finished"], "tokens": state["history"]["finished"]},
            {
                "scores": ops.where(is_live, scores, NEG_INF),
                "tokens": state["history"]["tokens"],
                "lengths": ops.where(is_live, max_length, 0),
            },
        )
        result = result._replace(tokens=to_length(result.tokens, self._max_steps))
        if not self._record:
            return result
        record = state["history"]["record"]
        return result, finish_record(record, state["steps"], self._max_steps)

    def _best_continuations(self, num_steps: Any, logits: Any, state: Any, rows: Any) -> Any:
        """Returns total log-probability, token and parent of the W best continuations, `(B, W)`."""
        config, scores = self._config, state["scores"]
        may_end = num_steps + 1 >= rows["min_length"] if "min_length" in rows else None
        if not self._needs_history:
            return best_of_logits(
                scores,
                logits,
                self._num_candidates,
                config.forbidden_tokens,
                may_end,
                config.end_token,
            )
        log_probabilities = constrained_log_probabilities(
            logits, state["history"]["tokens"], num_steps, may_end, rows.get("prefix"), config
        )
        return best_of_log_probabilities(scores, log_probabilities, self._num_candidates)

    def _survivors(self, totals: Any, tokens: Any, num_finished: Any) -> Any:
        """Selects the candidates that end and the candidates that stay live.

        Returns bool `(B, W)`, True where a candidate ends and is kept; bool `(B, W)`, True where a
        candidate stays live; and the new number of finished hypotheses `(B,)`.
        """

        def free_slots(num_finished: Any) -> Any:
            num_held = ops.maximum(num_finished - self._num_slotless, 0)
            return (self.num_hypotheses - num_held)[:, None]

        is_end = ops.equal(tokens, self._config.end_token)
        is_candidate = exists(totals)
        is_live = ops.logical_and(is_candidate, ops.logical_not(is_end))
        fits = ops.arange(totals.shape[1]) < free_slots(num_finished)
        ending = ops.logical_and(ops.logical_and(is_candidate, is_end), fits)
        num_finished = num_finished + ops.sum(ops.cast(ending, "int32"), axis=1)
        if self._num_slotless:
            # Live candidates fill the slots that finished hypotheses leave free.
            fits = ops.cumsum(ops.cast(is_live, "int32"), axis=1) <= free_slots(num_finished)
        return ending, ops.logical_and(is_live, fits), num_finished

    def _score(self, totals: Any, lengths: Any, attention: Any, rows: Any) -> Any:
        scores = totals / self._length_penalty(lengths)
        if attention is None:
            return scores
        return scores + coverage_score(attention, rows["mask"], self._config.coverage_penalty)

    def _is_done(
        self, length: Any, best_live: Any, finished_scores: Any, num_finished: Any, rows: Any
    ) -> Any:
        # No hypothesis that ends later exceeds this bound: a coverage penalty only lowers scores.
        # If no hypothesis is live, the bound is below all finished scores.
        bound = best_live / self._length_penalty(rows["max_length"])
        stops = ops.logical_or(
            ops.logical_not(exists(best_live)), num_finished >= self._max_finished
        )
        stops = ops.logical_or(stops, length >= rows["max_length"])
        return ops.logical_or(finished_scores[:, self._config.n_best - 1] >= bound, stops)

    def _length_penalty(self, lengths: Any) -> Any:
        return length_penalty(lengths, self._config.length_normalization, self._config.alpha)
