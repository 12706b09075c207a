"""Search models with tabulated probabilities, and the same tables as plain Python functions.

Each model is a finite automaton: a token moves a hypothesis from its state to
`(5 * state + token + 1) % M`, and a table has the logits for each state and step. The logits
therefore depend on the complete history, which exposes a search that mixes up the states of
hypotheses. The first token of the source selects the table of a row.
"""

from typing import Any

import keras
import numpy as np
from keras import ops
from plain_search import log_softmax


class ChainModel:
    """A model with `encoder`, `decoder_step` and `initial_state` that looks up its logits.

    Args:
        tables: Float array `(N, L, M, V)`: logits by table, step, state and token. Steps repeat
            after L. A source whose first token is 4 + n uses table n.
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
        # -1 marks the time before the start token, which moves every hypothesis to state 0.
        return {"beam": {"at": ops.full((batch, beam_size), -1, dtype="int32")}, "shared": {}}

    def grow_state(self, state, length):
        return state

    def decoder_step_with_attention(self, inputs, training=None):
        """Adds attention to `decoder_step`; the logit of token n also scores source position n."""
        out = self.decoder_step(inputs)
        mask = inputs["memory"]["mask"]
        places = ops.arange(ops.shape(mask)[1]) % self.tables.shape[-1]
        looks = 3 * ops.take(out["logits"], places, axis=-1)
        scores = ops.where(mask[:, None], looks, -1e9)
        return {**out, "attention": ops.softmax(scores, axis=-1)}

    def decoder_step(self, inputs, training=None):
        # Counts steps only in eager TensorFlow; a compiled function runs this once, at tracing.
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
    """Returns a function from the tokens so far to the float64 logits of the next token."""
    table = np.asarray(table, np.float32).astype(np.float64)
    steps, states, _ = table.shape

    def next_logits(tokens: tuple[int, ...]) -> np.ndarray:
        state = 0
        for token in tokens:
            state = (5 * state + token + 1) % states
        return table[len(tokens) % steps, state]

    return next_logits


def chain_of(table: np.ndarray):
    """Returns a function from the tokens so far to the next token's log-probabilities."""
    logits = logits_of(table)
    return lambda tokens: log_softmax(logits(tokens))


def coverage_of(logits, source: np.ndarray, factor: float):
    """Coverage penalty (Wu et al., equation 14) of the attention of `ChainModel`."""
    places = np.arange(int((source != 0).sum()))

    def score(tokens: tuple[int, ...]) -> float:
        looked = [
            log_softmax(3 * (row := logits(tokens[:i]))[places % len(row)])
            for i in range(len(tokens))
        ]
        return factor * np.log(np.clip(np.exp(looked).sum(axis=0), 1e-10, 1)).sum()

    return score
