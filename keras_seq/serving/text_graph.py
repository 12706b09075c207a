"""`keras_seq.text.Tokenizer` as operations of a TensorFlow graph."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from keras_seq.serving.http.text_libraries import NORMALIZING, SENTENCEPIECE, text_library
from keras_seq.text import EOS_ID, PAD_ID, UNK_ID, TextRules, Tokenizer
from keras_seq.text.stored_model import without_log_line, without_prefix
from keras_seq.text.word_characters import WORD_END

# Shape letters: B batch, S source steps, N texts, W words, P pieces of a word.

# Operations are called directly, because `tensorflow_text.SentencepieceTokenizer` would create an
# additional resource, and the SavedModel would contain the vocabulary twice.
_OPERATIONS = tf.load_op_library(text_library(SENTENCEPIECE))
_NORMALIZING = tf.load_op_library(text_library(NORMALIZING))

# RE2 pattern of a character for which `str.isspace` returns True.
SPACES = r"[\p{Z}\t-\r\x1C-\x1F\x{85}]"
_BLANK = f"{SPACES}*"


class TextGraph:
    """A tokenizer as operations of a graph. The graph contains the SentencePiece model.

    Create the object inside the `tf.function` that uses it. The older SentencePiece in TensorFlow
    crashes on crafted models, but `Tokenizer` has already checked the model.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._vocabulary_size = tokenizer.vocabulary_size
        self._rules = tokenizer.rules
        model = without_prefix(tokenizer.to_bytes())
        self._adds_prefix = model is not None
        model = without_log_line(model or tokenizer.to_bytes())
        self._processor = _OPERATIONS.sentencepiece_op(model=model)

    def encode(self, text: Any, max_characters: int, max_tokens: int) -> tuple[Any, Any]:
        """Returns ids, int32 `(B, S)` padded with 0, and whether texts are truncated, bool `(B,)`.

        Invalid UTF-8 becomes U+FFFD. To limit the cost of very long texts, texts are truncated to
        `max_characters` before tokenization.
        """
        text, clipped = _clipped(text, max_characters)
        rows = self._tokenized(clipped)
        lengths = rows.row_lengths()
        truncated = (tf.strings.length(clipped) < tf.strings.length(text)) | (lengths > max_tokens)
        return rows.to_tensor(PAD_ID)[:, :max_tokens], truncated

    def encode_words(
        self, text: Any, max_characters: int, max_tokens: int, whole_words: bool = False
    ) -> tuple[Any, Any, Any, Any]:
        """Converts text to ids word by word, like `keras_seq.text.word_tokens`.

        Returns ids, int32 `(B, S)` padded with 0; whether a word begins at a step, bool `(B, S)`;
        the characters of the words, int32 `(B, S, C)`, as `WordTokens.characters`; and whether
        texts are truncated, bool `(B,)`.
        """
        text, clipped = _clipped(text, max_characters)
        words = tf.strings.split(clipped)
        pieces = self._tokenized(words.values)
        lengths = pieces.row_lengths()
        # A word without pieces becomes one unknown token.
        is_unknown = (lengths == 0) | (lengths > 1 if whole_words else False)
        counts = tf.where(is_unknown, tf.ones_like(lengths), lengths)
        positions = tf.range(tf.maximum(tf.reduce_max(counts), 1))
        table = pieces.to_tensor(PAD_ID, shape=[None, None])
        table = tf.pad(table, [[0, 0], [0, 1]])[:, : tf.size(positions)]  # (W, P)
        table = tf.where(is_unknown[:, None] & (positions == 0), UNK_ID, table)
        real = positions < counts[:, None]
        ends = tf.concat([tf.zeros([1], tf.int64), tf.cumsum(counts)], axis=0)
        splits = tf.gather(ends, words.row_splits)

        def rows(values: Any) -> Any:
            ragged = tf.RaggedTensor.from_row_splits(values, splits, validate=False)
            return ragged.to_tensor(0)[:, :max_tokens]

        first = tf.broadcast_to(tf.cast(positions == 0, tf.int32), tf.shape(table))
        source = rows(tf.boolean_mask(table, real))
        flat_begins = tf.boolean_mask(first, real)
        begins = rows(flat_begins) != 0
        # The row of each token in the characters of the words; row 0 is of no word.
        numbers = flat_begins * tf.cumsum(flat_begins)
        points = tf.pad(word_character_points(words.values), [[1, 0], [0, 0]])
        characters = tf.gather(points, rows(numbers))
        truncated = tf.strings.length(clipped) < tf.strings.length(text)
        return source, begins, characters, truncated | (splits[1:] - splits[:-1] > max_tokens)

    def _tokenized(self, texts: Any) -> Any:
        """Returns the ragged int32 ids of texts `(N,)`."""
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
        """Converts ids `(N, L)` to texts `(N,)`, each one line of valid UTF-8.

        Padding, unknown, begin and end tokens are skipped.
        """
        # An id outside the vocabulary would fail the whole request.
        valid = (ids > EOS_ID) & (ids < self._vocabulary_size)  # (N, L)
        ends = tf.cumsum(tf.reduce_sum(tf.cast(valid, tf.int64), axis=1))
        text = _OPERATIONS.sentencepiece_detokenize_op(
            self._processor,
            tf.boolean_mask(ids, valid),
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


def word_character_points(words: Any) -> Any:
    """Computes `keras_seq.text.word_characters` of words `(W,)`, int32 `(W, C)`."""
    points = tf.strings.unicode_decode(words, "UTF-8")
    lengths = tf.cast(points.row_lengths(), tf.int32)[:, None]
    table = points.to_tensor(0, shape=[None, None])
    # A column of zeros for words that are shorter than the place asked for.
    table = tf.pad(table, [[0, 0], [0, 1]])
    places = tf.range(WORD_END)
    first = tf.where(places < lengths, places, lengths)
    last = lengths - WORD_END + places
    last = tf.where(last >= 0, last, lengths)
    return tf.gather(table, tf.concat([first, last], axis=1), batch_dims=1)


def _clipped(text: Any, max_characters: int) -> tuple[Any, Any]:
    """Returns text as valid UTF-8, once in full and once truncated to `max_characters`."""
    text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
    return text, tf.strings.substr(text, 0, max_characters, unit="UTF8_CHAR")


def normalized(texts: Any, rules: TextRules) -> Any:
    """Normalizes a tensor of valid UTF-8 in the same way as `TextRules.apply`."""
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
