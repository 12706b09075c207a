"""Features and target languages of texts as operations of a TensorFlow graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_seq.serving.text_graph import SPACES, TextGraph
from keras_seq.text import PAD_ID, FeatureTokenizer, Tokenizer


class FeatureGraph(TextGraph):
    """A tokenizer of lines `source<TAB>features` as operations of a graph.

    Create the object inside the `tf.function` that uses it. Decoding is not supported.
    """

    def __init__(self, tokenizer: FeatureTokenizer) -> None:
        super().__init__(tokenizer.source)
        self._separator = tokenizer.separator
        self._names = tokenizer.features.names
        # The id of an unknown feature; the known ones follow.
        self._unknown = tokenizer.source.vocabulary_size

    def _tokenized(self, texts: Any) -> Any:
        source = super()._tokenized(tf.strings.regex_replace(texts, r"(?s)\t.*", ""))
        features = tf.strings.regex_replace(texts, r"(?s)^[^\t]*\t?", "")
        names = tf.strings.split(features, self._separator).to_tensor("")  # (N, F)
        names = tf.strings.regex_replace(names, f"^{SPACES}+|{SPACES}+$", "")
        matches = names[..., None] == tf.constant(self._names)
        known = tf.reduce_any(matches, axis=-1)
        number = 1 + tf.argmax(tf.cast(matches, tf.int32), axis=-1, output_type=tf.int32)
        ids = self._unknown + tf.where(known, number, 0)
        # A line with a blank source has no ids.
        kept = (names != "") & (source.row_lengths() > 0)[:, None]
        joined = tf.concat([source.to_tensor(PAD_ID), tf.where(kept, ids, PAD_ID)], axis=1)
        real = joined != PAD_ID
        ends = tf.cumsum(tf.reduce_sum(tf.cast(real, tf.int64), axis=1))
        splits = tf.concat([tf.zeros([1], tf.int64), ends], axis=0)
        return tf.RaggedTensor.from_row_splits(joined[real], splits, validate=False)

    def decode(self, ids: Any) -> Any:
        """Raises TypeError, because no model generates features."""
        raise TypeError("sources with features cannot be converted to text")


def join_features(text: Any, features: Any) -> Any:
    """Joins texts `(B,)` and their features `(B,)` to lines `source<TAB>features`."""
    text = tf.strings.regex_replace(text, r"\t", " ")
    return tf.strings.join([text, features], "\t")


def language_joiner(tokenizer: Tokenizer) -> Callable[[Any, Any], Any]:
    """Returns a function that puts tags of target languages `(B,)` before texts `(B,)`.

    The graph form of `keras_seq.text.add_language`. A text with a language that the vocabulary
    does not know becomes blank, because a graph cannot report the error.
    """
    names = sorted(tokenizer.languages)
    lowercase = tokenizer.rules.lowercase

    def join(text: Any, language: Any) -> Any:
        if lowercase:
            language = tf.strings.lower(language, encoding="utf-8")
        is_known = tf.reduce_any(language[:, None] == tf.constant(names), axis=1)
        is_blank = tf.strings.regex_full_match(text, f"{SPACES}*")
        tagged = tf.strings.join(["<2", language, "> ", text])
        return tf.where(is_known & ~is_blank, tagged, "")

    return join
