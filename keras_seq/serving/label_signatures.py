"""Signatures of classifiers and taggers."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from keras_seq.scoring.entities import OUTSIDE
from keras_seq.serving.signature_module import signature, valid_ids, with_end_token
from keras_seq.serving.text_graph import TextGraph
from keras_seq.serving.word_piece_graph import text_graph
from keras_seq.text import Labels, Tokenizer

# Shape letters: B batch, S steps, N labels.


def label_signatures(
    model: Any,
    tokenizer: Tokenizer,
    labels: Labels,
    max_length: int,
    max_characters: int,
    temperature: float = 1.0,
) -> dict[str, Any]:
    """Builds the signatures of a classifier, whose logits are divided by `temperature`.

    Each signature accepts any number B of rows:

    * `serving_default`: text `(B,)` -> label, probability and truncated, each `(B,)`;
    * `ranked`: text `(B,)` -> label, probability and truncated, each `(B, N)`, most probable first;
    * `ids`: int32 `(B, S)` -> label and probability, each `(B,)`; if the model reads characters,
      also int32 characters `(B, S, C)`, see `WordTokens`.

    Texts are truncated to `max_characters` before tokenization, and then to `max_length` tokens.
    """
    vocabulary_size = tokenizer.vocabulary_size
    reads_characters = "characters" in model.input
    inputs: dict[str, Any] = {"ids": (2, tf.int32)}
    if reads_characters:
        inputs["characters"] = (3, tf.int32)

    def probabilities(source: Any, characters: Any) -> Any:
        steps = tf.shape(source)[1]
        arrays = {"source": with_end_token(source)}
        if reads_characters:
            added = tf.shape(arrays["source"])[1] - steps
            arrays["characters"] = tf.pad(characters, [[0, 0], [0, added], [0, 0]])
        return tf.nn.softmax(model(arrays, training=False) / temperature)  # (B, N)

    def best(source: Any, characters: Any) -> dict[str, Any]:
        probability = probabilities(source, characters)
        label = tf.gather(tf.constant(labels.names), tf.argmax(probability, axis=1))
        return {"label": label, "probability": tf.reduce_max(probability, axis=1)}

    def encode(text: Any) -> tuple[Any, Any, Any]:
        graph = text_graph(tokenizer)
        if not reads_characters:
            source, truncated = graph.encode(text, max_characters, max_length)
            return source, None, truncated
        source, _, characters, truncated = graph.encode_words(
            text, max_characters, max_length, whole_words=True
        )
        return source, characters, truncated

    @signature(**inputs)
    def ids(ids: Any, characters: Any = None) -> dict[str, Any]:
        source = valid_ids(ids[:, :max_length], vocabulary_size)
        if reads_characters:
            characters = tf.maximum(characters[:, :max_length], 0)
        return best(source, characters)

    @signature(text=(1, tf.string))
    def ranked(text: Any) -> dict[str, Any]:
        source, characters, truncated = encode(text)
        probability, order = tf.math.top_k(probabilities(source, characters), len(labels.names))
        return {
            "label": tf.gather(tf.constant(labels.names), order),
            "probability": probability,
            "truncated": tf.broadcast_to(truncated[:, None], tf.shape(probability)),
        }

    @signature(text=(1, tf.string))
    def serving_default(text: Any) -> dict[str, Any]:
        source, characters, truncated = encode(text)
        return {**best(source, characters), "truncated": truncated}

    return {"ids": ids, "ranked": ranked, "serving_default": serving_default}


def tag_signatures(
    model: Any,
    tokenizer: Tokenizer,
    labels: Labels,
    max_length: int,
    max_characters: int,
    outside_penalty: float = 0.0,
) -> dict[str, Any]:
    """Builds the signatures of a tagger; `outside_penalty` is that of `Tagger`.

    Each signature accepts any number B of rows:

    * `serving_default`: text `(B,)` -> tags `(B,)`, one per word, separated by spaces, and
      truncated `(B,)`;
    * `ids`: int32 ids and bool begins `(B, S)` -> tags `(B, S)`, "" at steps where no word begins.
      If the model reads characters, also int32 characters `(B, S, C)`; see `WordTokens`.

    Texts are truncated as in `label_signatures`; words beyond `max_length` tokens have no tag.
    """
    vocabulary_size = tokenizer.vocabulary_size
    penalties = tf.constant([outside_penalty * (name == OUTSIDE) for name in labels.names])

    reads_characters = "characters" in model.input
    inputs: dict[str, Any] = {"ids": (2, tf.int32), "begins": (2, tf.bool)}
    if reads_characters:
        inputs["characters"] = (3, tf.int32)

    def tag_names(source: Any, begins: Any, characters: Any) -> Any:
        steps = tf.shape(begins)[1]
        source = with_end_token(source)
        added = tf.shape(source)[1] - steps
        arrays = {"source": source, "begins": tf.pad(begins, [[0, 0], [0, added]])}
        if reads_characters:
            arrays["characters"] = tf.pad(characters, [[0, 0], [0, added], [0, 0]])
        logits = tf.cast(model(arrays, training=False)["logits"], tf.float32)
        begins = arrays["begins"] & (arrays["source"] != 0)
        tags = model.decode(logits - penalties, begins)
        return tf.gather(tf.constant(labels.names), tags[:, :steps])  # (B, S)

    @signature(**inputs)
    def ids(ids: Any, begins: Any, characters: Any = None) -> dict[str, Any]:
        source = valid_ids(ids[:, :max_length], vocabulary_size)
        begins = begins[:, :max_length] & (source != 0)
        if reads_characters:
            characters = tf.maximum(characters[:, :max_length], 0)
        return {"tags": tf.where(begins, tag_names(source, begins, characters), "")}

    @signature(text=(1, tf.string))
    def serving_default(text: Any) -> dict[str, Any]:
        source, begins, characters, truncated = TextGraph(tokenizer).encode_words(
            text, max_characters, max_length, reads_characters
        )
        names = tag_names(source, begins, characters)
        # A space precedes the tag of every word except the first.
        not_first = tf.range(tf.shape(source)[1]) > 0
        names = tf.where(not_first, tf.strings.join([" ", names]), names)
        tags = tf.strings.reduce_join(tf.where(begins, names, ""), axis=1)
        return {"tags": tags, "truncated": truncated}

    return {"ids": ids, "serving_default": serving_default}
