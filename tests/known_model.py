"""A model with known probabilities, so that the expected result of error analysis is known.

A token's probability depends on the source and on the previous token:

    {"start": {"": {"a": 0.55, "b": 0.4}, "a": {END: 0.9}, ...}, ...}

The outer key is the only word of the source, the inner key the previous word ("" at the start),
and the values are probabilities of the next word. All other tokens share the rest equally.
"""

import math

import keras
import numpy as np
from keras import ops

from keras_seq.text import Tokenizer

END = "</s>"
EOS, BOS = 3, 2


class KnownModel:
    """A table of probabilities as a model for search and for teacher-forced logits.

    Args:
        tokenizer: Tokenizer of both sides, in which every word is one token.
        sources: Probabilities for each source of one word, as in the module's docstring.
    """

    def __init__(self, tokenizer, sources):
        self.tokenizer = tokenizer
        size = tokenizer.vocabulary_size
        tables = np.full((len(sources), size, size), -math.log(size))
        rows = np.zeros(size, np.int32)
        for n, (source, given) in enumerate(sources.items()):
            rows[self.token(source)] = n
            for before, following in given.items():
                known = {self.token(word): p for word, p in following.items()}
                rest = (1 - sum(known.values())) / (size - len(known))
                row = np.full(size, rest)
                row[list(known)] = list(known.values())
                tables[n, self.token(before)] = np.log(row)
        self.table = tables
        self.rows = {int(i): int(rows[i]) for i in range(size)}
        self.tables = keras.Variable(tables.astype("float32"), trainable=False)
        self.lookup = keras.Variable(rows, trainable=False, dtype="int32")

    def token(self, word):
        if word in ("", END):
            return EOS if word else BOS
        ((token,),) = self.tokenizer.encode([word])
        return token

    def log_probability(self, source, text):
        """Computes log P(text | source), end token included, from the float64 table."""
        table = self.table[self.rows[self.token(source)]]
        tokens = [BOS, *self.tokenizer.encode([text])[0], EOS]
        return sum(table[a, b] for a, b in zip(tokens, tokens[1:], strict=False))

    def objective(self, source, text):
        """Divides `log_probability` by the number of tokens, end token included."""
        return self.log_probability(source, text) / (len(self.tokenizer.encode([text])[0]) + 1)

    @property
    def variables(self):
        return [self.tables, self.lookup]

    def _of(self, source):
        return ops.take(self.tables.value, ops.take(self.lookup.value, source[:, 0]), axis=0)

    def __call__(self, inputs, training=None):
        # Tables (B, V, V) and target (B, T) -> logits (B, T, V).
        one_hot = ops.one_hot(inputs["target"], self.tables.shape[-1], dtype="float32")
        return ops.einsum("btu,buv->btv", one_hot, self._of(inputs["source"]))

    def encoder(self, source, training=None):
        return {"mask": ops.not_equal(source, 0), "tables": self._of(source)}

    def initial_state(self, memory, beam_size, length):
        batch = ops.shape(memory["mask"])[0]
        return {"beam": {"none": ops.zeros((batch, beam_size))}, "shared": {}}

    def grow_state(self, state, length):
        return state

    def decoder_step(self, inputs, training=None):
        one_hot = ops.one_hot(inputs["token"], self.tables.shape[-1], dtype="float32")
        logits = ops.einsum("bku,buv->bkv", one_hot, inputs["memory"]["tables"])
        return {"logits": logits, "state": inputs["state"]}


def known_tokenizer():
    """Trains a tokenizer in which each word of a short list is one token."""
    words = ["a", "b", "c", "d", "e", "garden", "fault", "even", "right", "loop", "far"]
    tokenizer = Tokenizer.train([" ".join(words)] * 20 + words * 20, size=330)
    assert all(len(ids) == 1 for ids in tokenizer.encode(words))
    return tokenizer


SOURCES = {
    # Garden path: beam size 1 takes the likelier but worse first word; a wider beam does not.
    "garden": {
        "": {"a": 0.55, "b": 0.4},
        "a": {"c": 0.3, "d": 0.3, "e": 0.3},
        "b": {"c": 0.95},
        **{word: {END: 0.95} for word in "cde"},
    },
    # Model error: the likeliest text is wrong.
    "fault": {"": {"a": 0.9, "b": 0.05}, "a": {END: 0.95}, "b": {END: 0.95}},
    # Two texts have the same probability.
    "even": {"": {"a": 0.45, "b": 0.45}, "a": {END: 0.9}, "b": {END: 0.9}},
    "right": {"": {"c": 0.9}, "c": {END: 0.9}},
    # The model repeats "a" and almost never ends.
    "loop": {"": {"a": 0.9, "b": 0.01}, "a": {"a": 0.99, END: 1e-4}, "b": {END: 0.9}},
    # The best text is long.
    "far": {
        "": {"a": 0.55, "b": 0.4},
        "a": {END: 0.5},
        "b": {"c": 0.99},
        "c": {"d": 0.99},
        "d": {"e": 0.99},
        "e": {END: 0.99},
    },
}
