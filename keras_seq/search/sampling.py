"""Random sampling of targets from a model's probabilities."""

from typing import Any

from keras import ops

from keras_seq import backend
from keras_seq.backend import gather
from keras_seq.search.config import SearchConfig, make_config
from keras_seq.search.constraints import constrained_log_probabilities
from keras_seq.search.decode_loop import decode_loop, to_length
from keras_seq.search.hypotheses import NEG_INF, SearchResult, exists
from keras_seq.search.random_numbers import uniform_numbers
from keras_seq.search.scores import length_penalty
from keras_seq.search.sources import Source, read_source
from keras_seq.search.top_k import top_k as largest

# Shape letters: B batch, N samples, C capacity, P prefix steps.


def sample(
    model: Any,
    source: Any,
    config: SearchConfig | None = None,
    *,
    prefix: Any = None,
    **options: Any,
) -> SearchResult:
    """Samples targets, each token by its probability given the tokens before it.

    The samples of a row depend only on the seed and on the source of the row, not on the other
    rows, the padding, or earlier calls. Scores use the probabilities of the model before
    temperature, `top_k` and `top_p`.

    Args:
        model: As in `beam_search`.
        source: As in `beam_search`.
        config: The options of the search, by default `SearchConfig()`. `n_best` is the number of
            independent samples of each row.
        prefix: As in `beam_search`.
        **options: Fields of `SearchConfig` that override `config`.

    Returns:
        A `SearchResult` of N samples for each row, best score first.

    Raises:
        ValueError: If an option is out of range.

    Example:

    >>> model = Transformer(9, 9, 1, 1, units=8, feedforward_units=8, num_heads=2)
    >>> result = sample(model, ops.array([[5, 6, 3]]), n_best=3, top_p=0.9, seed=1)
    >>> tuple(result.scores.shape)
    (1, 3)
    """
    config = make_config(config, options)
    with backend.without_gradients():
        encoded = read_source(model, source, config, prefix)
        return decode_loop(model, encoded, Sampling(encoded, config))


class Sampling:
    """The sampling algorithm: initial state, step and results; see `decode_loop.Search`."""

    needs_attention = False

    def __init__(self, source: Source, config: SearchConfig) -> None:
        self._config = config
        self._batch = backend.shape(source.mask)[0]
        self._max_steps = source.limits.steps
        self.num_hypotheses = config.n_best
        self.rows = {
            "min_length": source.limits.min_length,
            "max_length": source.limits.max_length,
            "keys": source.keys(config.seed),
        }
        if source.prefix is not None:
            self.rows["prefix"] = source.prefix

    def init_state(self, capacity: Any) -> dict[str, Any]:
        shape = (self._batch, self.num_hypotheses)
        return {
            "token": ops.full(shape, self._config.start_token, dtype="int32"),
            "totals": ops.zeros(shape, dtype="float32"),
            "lengths": ops.zeros(shape, dtype="int32"),
            "ended": ops.zeros(shape, dtype="bool"),
            "done": ops.zeros(shape[:1], dtype="bool"),
            "history": ops.zeros((*shape, capacity), dtype="int32"),
        }

    def step(
        self, num_steps: Any, outputs: dict[str, Any], state: dict[str, Any], rows: dict[str, Any]
    ) -> dict[str, Any]:
        config, length = self._config, num_steps + 1
        ended, history = state["ended"], state["history"]
        log_probabilities = constrained_log_probabilities(
            ops.cast(outputs["logits"], "float32"),
            history,
            num_steps,
            length >= rows["min_length"],
            rows.get("prefix"),
            config,
        )
        uniform = uniform_numbers(rows["keys"], self.num_hypotheses, num_steps)
        tokens = _sample_tokens(
            log_probabilities / config.temperature, uniform, config.top_k, config.top_p
        )
        gains = ops.take_along_axis(log_probabilities, tokens[..., None], axis=-1)[..., 0]
        # Drops samples that have no allowed token.
        is_dropped = ops.logical_not(exists(gains))
        tokens = ops.where(ended, 0, tokens)
        ends = ops.logical_or(
            ops.equal(tokens, config.end_token), length >= rows["max_length"][:, None]
        )
        now_ended = ops.logical_or(ended, ops.logical_or(ends, is_dropped))
        totals = ops.maximum(state["totals"] + gains, NEG_INF)
        is_now = ops.equal(ops.arange(backend.shape(history)[2]), num_steps)  # (C,)
        return {
            "token": tokens,
            "totals": ops.where(ended, state["totals"], totals),
            "lengths": ops.where(ended, state["lengths"], length),
            "ended": now_ended,
            "done": ops.all(now_ended, axis=-1),
            "history": ops.where(is_now, tokens[..., None], history),
            "decoder_state": outputs["state"],
        }

    def results(self, state: dict[str, Any], rows: dict[str, Any]) -> SearchResult:
        config, lengths = self._config, state["lengths"]
        is_sample = exists(state["totals"])
        penalty = length_penalty(lengths, config.length_normalization, config.alpha)
        scores = ops.where(is_sample, state["totals"] / penalty, NEG_INF)
        scores, index = backend.top_k(scores, self.num_hypotheses)
        lengths = gather(ops.where(is_sample, lengths, 0), index)
        tokens = gather(state["history"], index) * ops.cast(lengths > 0, "int32")[..., None]
        has_end = ops.any(ops.equal(tokens, config.end_token), axis=-1)
        truncated = ops.logical_and(lengths > 0, ops.logical_not(has_end))
        return SearchResult(to_length(tokens, self._max_steps), lengths, scores, truncated)


def _sample_tokens(log_weights: Any, uniform: Any, top_k: int, top_p: float) -> Any:
    """Samples an id for each uniform number `(B, N)` by the inverse cumulative distribution."""
    size = log_weights.shape[-1]
    if top_k == 0 and top_p == 1.0:
        return _inverse_cumulative(ops.softmax(log_weights, axis=-1), uniform)
    # The most probable tokens come first. Ties are in the order of ids.
    best, ids = largest(log_weights, min(top_k or size, size))
    if best.shape[-1] == 1:
        return ids[..., 0]
    weights = ops.softmax(best, axis=-1)
    if top_p < 1.0:
        before = ops.cumsum(weights, axis=-1) - weights
        weights = ops.where(before < top_p, weights, 0.0)
    chosen = _inverse_cumulative(weights, uniform)
    return ops.take_along_axis(ids, chosen[..., None], axis=-1)[..., 0]


def _inverse_cumulative(weights: Any, uniform: Any) -> Any:
    """Returns the first index whose cumulative weight exceeds `uniform` times the total."""
    cumulative = ops.cumsum(weights, axis=-1)
    threshold = uniform[..., None] * cumulative[..., -1:]
    index = ops.sum(ops.cast(cumulative <= threshold, "int32"), axis=-1)
    # For a number just below 1, float32 may round the threshold up to the total, which would
    # select an index of weight 0. `last` is the last index with a positive weight.
    last = ops.sum(ops.cast(cumulative < cumulative[..., -1:], "int32"), axis=-1)
    return ops.minimum(index, last)
