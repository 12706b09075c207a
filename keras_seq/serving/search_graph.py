"""A model, its search and its tokenizers as one TensorFlow module with signatures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import tensorflow as tf

from keras_seq.data.ids import EOS, PAD, UNK
from keras_seq.inference.search import make_search
from keras_seq.search import SearchResult
from keras_seq.search.hypotheses import NEG_INF
from keras_seq.serving.word_piece_graph import text_graph
from keras_seq.settings import SearchSettings
from keras_seq.text import Tokenizer

# Shape letters: B batch, S source steps, N n-best, L steps.

# Sources are padded to a multiple of this. TensorFlow keeps what it has prepared for each shape
# that it has met, so with every length of a source a server's memory would grow for long.
_WIDTH = 8


class SearchGraph(tf.Module):
    """What a SavedModel holds: raw variables, tokenizers, and the functions over them.

    The model itself must not be an attribute: Keras objects restore their
    variables in Python, but not in the session of a model server.

    Args:
        model: A model of `keras_seq.models` or an `Ensemble`, on the TensorFlow backend.
        source_tokenizer: Turns text into ids.
        target_tokenizer: Turns ids into text.
        search: Settings of the search.
        max_source_length: Longer sources are cut to so many tokens.
        max_source_characters: Longer sources are cut before they are tokenized.
        output: What the text that comes out is called.
    """

    def __init__(
        self,
        model: Any,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        search: SearchSettings,
        max_source_length: int,
        max_source_characters: int,
        output: str = "translation",
    ) -> None:
        super().__init__()
        self.weights = [weight.value for weight in model.weights]
        vocabulary_size = source_tokenizer.vocabulary_size
        find = make_search(model, search, target_tokenizer)

        @graph_function("ids", 2, tf.int32)
        def ids(ids: Any) -> dict[str, Any]:
            source = ids[:, :max_source_length]
            known = (source >= 0) & (source < vocabulary_size)
            source = tf.where(known, source, UNK)
            found = _with_blanks(source, find(ended(source)))
            return {
                "ids": found.tokens,
                "length": found.lengths,
                "score": found.scores,
                "truncated": found.truncated,
            }

        @graph_function("text", 1, tf.string)
        def n_best(text: Any) -> dict[str, Any]:
            source_text = text_graph(source_tokenizer)
            # A processor is megabytes, so one vocabulary is one processor.
            joint = target_tokenizer is source_tokenizer
            target_text = source_text if joint else text_graph(target_tokenizer)
            source, cut = source_text.encode(text, max_source_characters, max_source_length)
            found = ids(source)
            batch, places, steps = tf.unstack(tf.shape(found["ids"]))
            texts = target_text.decode(tf.reshape(found["ids"], (batch * places, steps)))
            return {
                output: tf.reshape(texts, (batch, places)),
                "score": found["score"],
                "truncated": (found["length"] > 0) & (found["truncated"] | cut[:, None]),
            }

        @graph_function("text", 1, tf.string)
        def serving_default(text: Any) -> dict[str, Any]:
            return {name: values[:, 0] for name, values in n_best(text).items()}

        # Not as attributes: those would be saved a second time, as functions of their own.
        self._signatures = SimpleNamespace(ids=ids, n_best=n_best, serving_default=serving_default)

    def signatures(self, *, text: bool = True) -> dict[str, Any]:
        """The functions that a server offers, by name.

        Args:
            text: Whether it has the operations that turn text into ids; a server
                without them loads no graph that holds one.
        """
        if not text:
            return {name: self._signatures.ids for name in ("serving_default", "ids")}
        return dict(vars(self._signatures))


def graph_function(name: str, rank: int, dtype: Any) -> Any:
    """Makes a function of one tensor, of any shape of that rank, into a signature."""
    spec = tf.TensorSpec([None] * rank, dtype, name=name)
    return tf.function(input_signature=[spec], autograph=False)


def room_to_width(rows: Any) -> Any:
    """How many steps are to be added to rows of ids: one at least, up to a width that is kept."""
    return _WIDTH - tf.shape(rows)[1] % _WIDTH


def source_lengths(source: Any) -> Any:
    real = (source != PAD) & (source != EOS)
    return tf.reduce_sum(tf.cast(real, tf.int32), axis=1)


def ended(source: Any) -> Any:
    """Puts the end token behind the last real one, whether it was there or not."""
    source = tf.pad(source, [[0, 0], [0, room_to_width(source)]])  # (B, S + room)
    steps = tf.range(tf.shape(source)[1])
    lengths = source_lengths(source)[:, None]
    return tf.where(steps < lengths, source, tf.where(steps == lengths, EOS, PAD))


def _with_blanks(source: Any, found: SearchResult) -> SearchResult:
    """An empty source has one translation, the empty one, and its score is 0."""
    blank = (source_lengths(source) == 0)[:, None]  # (B, 1)
    lengths = tf.where(blank, 0, found.lengths)  # (B, N)
    first = tf.range(tf.shape(lengths)[1]) == 0
    return SearchResult(
        tokens=tf.where((lengths > 0)[..., None], found.tokens, PAD),
        lengths=lengths,
        scores=tf.where(lengths > 0, found.scores, tf.where(blank & first, 0.0, NEG_INF)),
        truncated=found.truncated & (lengths > 0),
    )
