"""Text to ids and back inside a TensorFlow graph, as `keras_seq.text.Tokenizer` does it outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_text

from keras_seq.data.ids import EOS, PAD, UNK
from keras_seq.serving.http.text_libraries import NORMALIZING, SENTENCEPIECE
from keras_seq.text import TextRules, Tokenizer
from keras_seq.text.stored_model import without_log_line, without_prefix

# Shape letters: B batch, S source steps, N texts.


# The operations themselves: `tensorflow_text.SentencepieceTokenizer` makes a resource beside the
# graph, and a SavedModel then holds the vocabulary twice.
_FOLDER = Path(tensorflow_text.__file__).parent
_OPERATIONS = tf.load_op_library(str(_FOLDER / SENTENCEPIECE))
_NORMALIZING = tf.load_op_library(str(_FOLDER / NORMALIZING))

# What `str.isspace` takes for space, in the language of RE2.
_BLANK = r"[\p{Z}\t-\r\x1C-\x1F\x{85}]*"


class TextGraph:
    """A tokenizer as operations of a graph, its model inside the graph.

    The model has been parsed and checked by `Tokenizer`: the older
    SentencePiece that TensorFlow embeds crashes on crafted ones.

    Args:
        tokenizer: The tokenizer to copy.

    To be made inside the function that uses it.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._pieces = tokenizer.vocabulary_size
        self._rules = tokenizer.rules
        model = without_prefix(tokenizer.to_bytes())
        self._adds_prefix = model is not None
        model = without_log_line(model or tokenizer.to_bytes())
        self._processor = _OPERATIONS.sentencepiece_op(model=model)

    def encode(self, text: Any, max_characters: int, max_tokens: int) -> tuple[Any, Any]:
        """Turns text into ids.

        Args:
            text: String tensor `(B,)`; bytes that are no UTF-8 count as U+FFFD.
            max_characters: Longer texts are cut before they are tokenized, so
                that one of megabytes costs no more than one of this length.
            max_tokens: Longer rows of ids are cut.

        Returns:
            Int32 `(B, S)` padded with 0, and bool `(B,)`: whether a text was cut.
        """
        text, clipped = _clipped(text, max_characters)
        rows = self._tokenized(clipped)
        lengths = rows.row_lengths()
        cut = (tf.strings.length(clipped) < tf.strings.length(text)) | (lengths > max_tokens)
        return rows.to_tensor(PAD)[:, :max_tokens], cut

    def encode_words(self, text: Any, max_characters: int, max_tokens: int) -> tuple[Any, Any, Any]:
        """Turns text into ids word by word, as `keras_seq.text.word_tokens` does it.

        Args:
            text: String tensor `(B,)`.
            max_characters, max_tokens: As for `encode`.

        Returns:
            Int32 `(B, S)` padded with 0; bool `(B, S)`, whether a word begins; and bool
            `(B,)`, whether a text was cut.
        """
        text, clipped = _clipped(text, max_characters)
        words = tf.strings.split(clipped)
        pieces = self._tokenized(words.values)
        lengths = pieces.row_lengths()
        # A word of which nothing is left has one unknown token.
        filled = tf.maximum(lengths, 1)
        places = tf.range(tf.maximum(tf.reduce_max(filled), 1))
        table = pieces.to_tensor(PAD, shape=[None, None])
        table = tf.pad(table, [[0, 0], [0, 1]])[:, : tf.size(places)]  # (W, P)
        table = tf.where((lengths == 0)[:, None] & (places == 0), UNK, table)
        real = places < filled[:, None]
        ends = tf.concat([tf.zeros([1], tf.int64), tf.cumsum(filled)], axis=0)
        splits = tf.gather(ends, words.row_splits)

        def rows(values: Any) -> Any:
            ragged = tf.RaggedTensor.from_row_splits(values, splits, validate=False)
            return ragged.to_tensor(0)[:, :max_tokens]

        first = tf.broadcast_to(tf.cast(places == 0, tf.int32), tf.shape(table))
        source = rows(tf.boolean_mask(table, real))
        begins = rows(tf.boolean_mask(first, real)) != 0
        cut = tf.strings.length(clipped) < tf.strings.length(text)
        return source, begins, cut | (splits[1:] - splits[:-1] > max_tokens)

    def _tokenized(self, texts: Any) -> Any:
        """Ragged int32 ids of texts `(N,)`."""
        texts = normalized(texts, self._rules)
        if self._adds_prefix:
            texts = tf.where(texts == "", "", " " + texts)
        values, splits = _OPERATIONS.sentencepiece_tokenize_op(
            self._processor,
            texts,
            nbest_size=0,
            alpha=1.0,
            add_bos=False,
            add_eos=False,
            reverse=False,
            out_type=tf.int32,
        )
        return tf.RaggedTensor.from_row_splits(values, splits, validate=False)

    def decode(self, ids: Any) -> Any:
        """Turns rows of ids into text; pad, unknown, begin and end are dropped.

        Args:
            ids: Int32 tensor `(N, L)`.

        Returns:
            String tensor `(N,)`, each one line of valid UTF-8.
        """
        # One id that the model does not have would fail the whole request.
        kept = (ids > EOS) & (ids < self._pieces)  # (N, L)
        ends = tf.cumsum(tf.reduce_sum(tf.cast(kept, tf.int64), axis=1))
        text = _OPERATIONS.sentencepiece_detokenize_op(
            self._processor,
            tf.boolean_mask(ids, kept),
            tf.concat([tf.zeros([1], tf.int64), ends], axis=0),
            add_bos=False,
            add_eos=False,
            reverse=False,
        )
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
        if self._adds_prefix:
            text = tf.strings.regex_replace(text, "^ ", "")
        text = _replaced(text, self._rules.unescapes)
        if self._rules.decomposes:
            text = _NORMALIZING.normalize_utf8(text, "NFC")
        return tf.strings.regex_replace(text, "[\n\r]", " ")


def _clipped(text: Any, max_characters: int) -> tuple[Any, Any]:
    """Text of valid UTF-8, and as much of it as is read."""
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
    return text, tf.strings.substr(text, 0, max_characters, unit="UTF8_CHAR")


def normalized(texts: Any, rules: TextRules) -> Any:
    """Applies the rules of a tokenizer to text, as `TextRules.apply` does.

    Args:
        texts: String tensor of any shape, valid UTF-8.
        rules: The rules.

    Returns:
        String tensor of the same shape.
    """
    blank = tf.strings.regex_full_match(texts, _BLANK)
    texts = tf.strings.regex_replace(texts, "[\n\r]", " ")
    if rules.lowercase:
        texts = tf.strings.regex_replace(texts, r"\x00", "\ufffd")
    form = rules.composing_form
    if form is not None:
        texts = _NORMALIZING.normalize_utf8(texts, form)
    if rules.lowercase:
        texts = tf.strings.lower(texts, encoding="utf-8")
        if form is not None:
            texts = _NORMALIZING.normalize_utf8(texts, form)
    if rules.decomposes:
        texts = _NORMALIZING.normalize_utf8(texts, "NFD")
    return tf.where(blank, "", _replaced(texts, rules.escapes))


def _replaced(texts: Any, replacements: tuple[tuple[str, str], ...]) -> Any:
    for old, new in replacements:
        texts = tf.strings.regex_replace(texts, rf"\Q{old}\E", new.replace("\\", r"\\"))
    return texts
