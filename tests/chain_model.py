"""Models whose probabilities are a table, and searches in plain Python over the same table.

A model of the search contract is a finite automaton: each hypothesis has an inner state, a token
moves it to `(5 * state + token + 1) % M`, and the table has the logits of each state at each step.
What a model says thus depends on the whole history, and a search that loses track of a
hypothesis' state is found out. The first token of the source says which table a row uses.
"""

import itertools
import math
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

END, START, FORBIDDEN = 3, 2, (0, 1, 2)


class ChainModel:
    """Tables as a model with `encoder`, `decoder_step` and `initial_state`.

    Args:
        tables: Float array `(N, L, M, V)`: logits of each table, step, state and token; the steps
            begin anew after L. A source whose first token is 4 + n uses table n.
    """

    def __init__(self, tables: np.ndarray) -> None:
        self.tables = keras.Variable(np.asarray(tables, "float32"), trainable=False)
        self.calls = 0

    @property
    def variables(self) -> list[Any]:
        return [self.tables]

    def encoder(self, source, training=None):
        table = ops.maximum(source[:, 0] - 4, 0)
        return {
            "mask": ops.not_equal(source, 0),
            "tables": ops.take(self.tables.value, table, axis=0),  # (B, L, M, V)
        }

    def initial_state(self, memory, beam_size, length):
        batch = ops.shape(memory["mask"])[0]
        # The start token brings every hypothesis to state 0.
        return {"beam": {"at": ops.full((batch, beam_size), -1, dtype="int32")}, "shared": {}}

    def extended_state(self, state, length):
        return state

    def attending_step(self, inputs, training=None):
        """As `decoder_step`; the last logits of a state are what it looks at, too."""
        out = self.decoder_step(inputs)
        mask = inputs["memory"]["mask"]
        width = ops.shape(mask)[1]
        scores = ops.where(mask[:, None], 3 * out["logits"][..., -width:], -1e9)
        return {**out, "attention": ops.softmax(scores, axis=-1)}

    def decoder_step(self, inputs, training=None):
        # Counts steps in eager TensorFlow alone: elsewhere this runs once for all of them.
        self.calls += 1
        _, steps, states, vocabulary = self.tables.shape
        at, token = inputs["state"]["beam"]["at"], inputs["token"]
        moved = ops.where(at < 0, 0, (5 * at + token + 1) % states)  # (B, K)
        now = ops.take(inputs["memory"]["tables"], inputs["position"] % steps, axis=1)
        batch = ops.shape(at)[0]
        rows = ops.arange(batch, dtype="int32")[:, None] * states + moved
        logits = ops.take(ops.reshape(now, (batch * states, vocabulary)), rows, axis=0)
        return {"logits": logits, "state": {"beam": {"at": moved}, "shared": {}}}


def logits_of(table: np.ndarray):
    """The same as a function: tokens so far -> logits of the next, in float64."""
    table = np.asarray(table, np.float32).astype(np.float64)
    steps, states, _ = table.shape

    def next_logits(tokens: tuple[int, ...]) -> np.ndarray:
        state = 0
        for token in tokens:
            state = (5 * state + token + 1) % states
        return table[len(tokens) % steps, state]

    return next_logits


def chain_of(table: np.ndarray):
    """The same as a function: tokens so far -> log-probabilities of the next, in float64."""
    logits = logits_of(table)
    return lambda tokens: log_softmax(logits(tokens))


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def constrained(
    logits,
    *,
    least: int = 1,
    sequences: tuple[tuple[int, ...], ...] = (),
    ngram: int = 0,
    repetition: float = 1.0,
    prefix: tuple[int, ...] = (),
):
    """Logits as log-probabilities under the rules of `keras_seq.search`, -inf for what is out."""

    def next_log_probabilities(tokens: tuple[int, ...]) -> np.ndarray:
        scores = logits(tokens).copy()
        for token in set(tokens) if repetition != 1 else ():
            scores[token] *= 1 / repetition if scores[token] > 0 else repetition
        free = log_softmax(scores)
        if len(tokens) < len(prefix):
            forced = np.full_like(free, -math.inf)
            forced[prefix[len(tokens)]] = free[prefix[len(tokens)]]
            return forced
        for token in range(len(free)):
            target = (*tokens, token)
            grams = [target[i : i + ngram] for i in range(len(target) - ngram + 1)]
            if (
                (token == END and len(target) < least)
                or any(target[-len(sequence) :] == sequence for sequence in sequences)
                or (ngram and grams and grams[-1] in grams[:-1])
            ):
                free[token] = -math.inf
        return free

    return next_log_probabilities


class Found(NamedTuple):
    """A hypothesis: its tokens with the end token, its score, whether the limit cut it."""

    tokens: tuple[int, ...]
    score: float
    truncated: bool


def penalty(length: int, normalization: str, alpha: float) -> float:
    return {
        "average": length**alpha,
        "gnmt": ((5 + length) / 6) ** alpha,
        "none": 1.0,
    }[normalization]


def exhaustive_search(
    chain, vocabulary: int, limit: int, normalization: str = "average", alpha: float = 1.0
) -> list[Found]:
    """Every target that ends within the limit, best first."""
    words = [token for token in range(vocabulary) if token not in (*FORBIDDEN, END)]
    found = []
    for length in range(limit):
        for tokens in itertools.product(words, repeat=length):
            target = (*tokens, END)
            total = sum(chain(target[:i])[token] for i, token in enumerate(target))
            found.append(Found(target, total / penalty(length + 1, normalization, alpha), False))
    return sorted(found, key=lambda found: -found.score)


def plain_beam_search(
    chain,
    beam_size: int,
    n_best: int,
    limit: int,
    normalization: str = "average",
    alpha: float = 1.0,
    forbidden: tuple[int, ...] = FORBIDDEN,
    patience: float = 1.0,
    coverage=lambda tokens: 0.0,
) -> list[Found]:
    """Beam search as the docstring of `keras_seq.search.beam_search` tells it, with lists."""
    room = max(math.ceil(patience * beam_size), n_best)

    def score(total: float, length: int) -> float:
        return total / penalty(length, normalization, alpha)

    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    finished: list[Found] = []
    for step in range(1, limit + 1):
        # A hypothesis that ended keeps its place; the best continuations of the live take the rest.
        continuations = [
            ((*tokens, token), total + log_probability)
            for tokens, total in live
            for token, log_probability in enumerate(chain(tokens))
            if token not in forbidden and log_probability > -math.inf
        ]
        # Python's sort leaves ties in order: the earlier hypothesis, then the lower id.
        continuations.sort(key=lambda pair: -pair[1])
        frozen = max(len(finished) - max(room - beam_size, 0), 0)
        kept = continuations[: beam_size - frozen]
        finished += [
            Found(tokens, score(total, step) + coverage(tokens), False)
            for tokens, total in kept
            if tokens[-1] == END
        ]
        finished.sort(key=lambda found: -found.score)
        live = [pair for pair in kept if pair[0][-1] != END]
        # Done when every place is frozen, or no live one can still beat the n-th finished.
        if not live or len(finished) >= room:
            break
        still_possible = [score(live[0][1], length) for length in range(step + 1, limit + 1)]
        if len(finished) >= n_best and finished[n_best - 1].score >= max(
            still_possible, default=-math.inf
        ):
            break
    cut = [Found(tokens, score(total, limit) + coverage(tokens), True) for tokens, total in live]
    return (finished + cut)[:n_best]


def results_of(result: Any, row: int) -> list[Found]:
    """A row of a `SearchResult` as a list."""
    tokens, lengths, scores, truncated = (
        np.asarray(ops.convert_to_numpy(part)[row]) for part in result
    )
    found = []
    for n, length in enumerate(lengths):
        assert not tokens[n, length:].any()
        if length:
            found.append(
                Found(tuple(tokens[n, :length].tolist()), float(scores[n]), bool(truncated[n]))
            )
    return found


def assert_same_results(got: list[Found], expected: list[Found], tolerance: float = 1e-4) -> None:
    assert [(found.tokens, found.truncated) for found in got] == [
        (found.tokens, found.truncated) for found in expected
    ]
    np.testing.assert_allclose(
        [found.score for found in got],
        [found.score for found in expected],
        rtol=1e-5,
        atol=tolerance,
    )
