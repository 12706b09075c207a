"""A language model, its search and its tokenizer as one TensorFlow module with signatures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import tensorflow as tf

from keras_seq.data.ids import EOS, PAD, UNK
from keras_seq.inference.search import make_search
from keras_seq.serving.search_graph import graph_function, room_to_width
from keras_seq.serving.text_graph import TextGraph
from keras_seq.settings import SearchSettings
from keras_seq.text import Tokenizer

# Shape letters: B batch, P prompt steps, N n-best, L steps.


class GenerationGraph(tf.Module):
    """What a SavedModel of a language model holds; as `SearchGraph`, from prompts.

    Args:
        model: A language model of `keras_seq.models` or an `Ensemble`, on the TensorFlow
            backend.
        tokenizer: Turns text into ids and back.
        search: Settings of the search.
        max_prompt_characters: Longer prompts are cut before they are tokenized.
    """

    def __init__(
        self, model: Any, tokenizer: Tokenizer, search: SearchSettings, max_prompt_characters: int
    ) -> None:
        super().__init__()
        self.weights = [weight.value for weight in model.weights]
        vocabulary_size = tokenizer.vocabulary_size
        # One step at least is the model's.
        max_prompt_length = search.max_length - 1
        find = make_search(model, search, tokenizer)

        @graph_function("ids", 2, tf.int32)
        def ids(ids: Any) -> dict[str, Any]:
            prompt = ids[:, :max_prompt_length]
            # What follows padding is padding, and a prompt has neither begin nor end.
            real = tf.cumsum(tf.cast(prompt == PAD, tf.int32), axis=1) == 0
            known = (prompt == UNK) | ((prompt > EOS) & (prompt < vocabulary_size))
            prompt = tf.where(real, tf.where(known, prompt, UNK), PAD)
            prompt = tf.pad(prompt, [[0, 0], [0, room_to_width(prompt)]])  # (B, P + room)
            # One step, but not of a width that is known: searches take that for a program that
            # is compiled for it.
            rows = tf.shape(prompt)[0]
            found = find(tf.fill([rows, tf.minimum(rows, 1)], EOS), prompt)
            return {
                "ids": found.tokens,
                "length": found.lengths,
                "score": found.scores,
                "truncated": found.truncated,
            }

        @graph_function("text", 1, tf.string)
        def n_best(text: Any) -> dict[str, Any]:
            both = TextGraph(tokenizer)
            prompt, cut = both.encode(text, max_prompt_characters, max_prompt_length)
            found = ids(prompt)
            batch, places, steps = tf.unstack(tf.shape(found["ids"]))
            texts = both.decode(tf.reshape(found["ids"], (batch * places, steps)))
            return {
                "text": tf.reshape(texts, (batch, places)),
                "score": found["score"],
                "truncated": (found["length"] > 0) & (found["truncated"] | cut[:, None]),
            }

        @graph_function("text", 1, tf.string)
        def serving_default(text: Any) -> dict[str, Any]:
            return {name: values[:, 0] for name, values in n_best(text).items()}

        # Not as attributes: those would be saved a second time, as functions of their own.
        self._signatures = SimpleNamespace(ids=ids, n_best=n_best, serving_default=serving_default)

    def signatures(self, *, text: bool = True) -> dict[str, Any]:
        """The functions that a server offers, by name; see `SearchGraph.signatures`."""
        if not text:
            return {name: self._signatures.ids for name in ("serving_default", "ids")}
        return dict(vars(self._signatures))
