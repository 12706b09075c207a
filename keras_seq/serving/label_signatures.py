"""Signatures of classifiers and taggers."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from keras_seq.serving.signature_module import ended, known_ids, signature
from keras_seq.serving.text_graph import TextGraph
from keras_seq.serving.word_piece_graph import text_graph
from keras_seq.text import Labels, Tokenizer

# Shape letters: B batch, S steps, N labels.


def label_signatures(
    model: Any, tokenizer: Tokenizer, labels: Labels, max_length: int, max_characters: int
) -> dict[str, Any]:
    """Signatures from a text to its label.

    For any number B of rows: `serving_default`, text `(B,)` -> label, probability and truncated
    `(B,)`; `ranked`, text `(B,)` -> label and probability `(B, N)`, most probable first; `ids`,
    int32 `(B, S)` -> label and probability `(B,)`.

    Args:
        model: A classifier of `keras_seq.models`.
        tokenizer: Text to ids.
        labels: The labels of the logits.
        max_length: Longer texts are cut to this many tokens.
        max_characters: Longer texts are cut before they are tokenized.
    """
    vocabulary_size = tokenizer.vocabulary_size

    def probabilities(source: Any) -> Any:
        return tf.nn.softmax(model({"source": ended(source)}, training=False))  # (B, N)

    def best(source: Any) -> dict[str, Any]:
        shares = probabilities(source)
        label = tf.gather(tf.constant(labels.names), tf.argmax(shares, axis=1))
        return {"label": label, "probability": tf.reduce_max(shares, axis=1)}

    def encoded(text: Any) -> tuple[Any, Any]:
        return text_graph(tokenizer).encode(text, max_characters, max_length)

    @signature(ids=(2, tf.int32))
    def ids(ids: Any) -> dict[str, Any]:
        return best(known_ids(ids[:, :max_length], vocabulary_size))

    @signature(text=(1, tf.string))
    def ranked(text: Any) -> dict[str, Any]:
        source, cut = encoded(text)
        shares, order = tf.math.top_k(probabilities(source), len(labels.names))
        return {
            "label": tf.gather(tf.constant(labels.names), order),
            "probability": shares,
            "truncated": tf.broadcast_to(cut[:, None], tf.shape(shares)),
        }

    @signature(text=(1, tf.string))
    def serving_default(text: Any) -> dict[str, Any]:
        source, cut = encoded(text)
        return {**best(source), "truncated": cut}

    return {"ids": ids, "ranked": ranked, "serving_default": serving_default}


def tag_signatures(
    model: Any, tokenizer: Tokenizer, labels: Labels, max_length: int, max_characters: int
) -> dict[str, Any]:
    """Signatures from a text to the tags of its words.

    For any number B of rows: `serving_default`, text `(B,)` -> tags `(B,)`, one for each word with
    a space between two, and truncated `(B,)`; `ids`, int32 and bool `(B, S)` -> tags `(B, S)`, ""
    where no word begins.

    Args:
        model: A tagger of `keras_seq.models`.
        tokenizer: Words to ids.
        labels: The tags of the logits.
        max_length: Longer texts are cut to this many tokens; words after them have no tag.
        max_characters: Longer texts are cut before they are tokenized.
    """
    vocabulary_size = tokenizer.vocabulary_size

    def names_of(source: Any, begins: Any) -> Any:
        steps = tf.shape(begins)[1]
        source = ended(source)
        begins = tf.pad(begins, [[0, 0], [0, tf.shape(source)[1] - steps]])
        tags = model({"source": source, "begins": begins}, training=False)["tags"]
        return tf.gather(tf.constant(labels.names), tags[:, :steps])  # (B, S)

    @signature(ids=(2, tf.int32), begins=(2, tf.bool))
    def ids(ids: Any, begins: Any) -> dict[str, Any]:
        source = known_ids(ids[:, :max_length], vocabulary_size)
        begins = begins[:, :max_length] & (source != 0)
        return {"tags": tf.where(begins, names_of(source, begins), "")}

    @signature(text=(1, tf.string))
    def serving_default(text: Any) -> dict[str, Any]:
        source, begins, cut = TextGraph(tokenizer).encode_words(text, max_characters, max_length)
        names = names_of(source, begins)
        # Every word but the first has a space before its tag.
        parted = tf.where(tf.range(tf.shape(source)[1]) > 0, tf.strings.join([" ", names]), names)
        tags = tf.strings.reduce_join(tf.where(begins, parted, ""), axis=1)
        return {"tags": tags, "truncated": cut}

    return {"ids": ids, "serving_default": serving_default}
