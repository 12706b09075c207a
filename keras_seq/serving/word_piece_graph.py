"""`keras_seq.text.WordPieceTokenizer` as operations of a TensorFlow graph."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow_text.core.pybinds import pywrap_fast_wordpiece_tokenizer_model_builder as builder

from keras_seq.serving.feature_graph import FeatureGraph
from keras_seq.serving.http.text_libraries import NORMALIZING, WORD_PIECES, text_library
from keras_seq.serving.text_graph import TextGraph
from keras_seq.text import FeatureTokenizer, Tokenizer, WordPieceTokenizer
from keras_seq.text.word_piece_tokenizer import IDEOGRAPHS, MAX_WORD_BYTES

_NORMALIZING = tf.load_op_library(text_library(NORMALIZING))
_PIECES = tf.load_op_library(text_library(WORD_PIECES))

# The patterns of `keras_seq.text.word_piece_tokenizer` in RE2 syntax.
_SPACES = r"[\p{Z}\p{Cc}\p{Cf}]"
_RANGES = "".join(rf"\x{{{first:X}}}-\x{{{last:X}}}" for first, last in IDEOGRAPHS)
_SEPARATE = rf"[!-/:-@\[-`{{-~\p{{P}}{_RANGES}]"


class WordPieceGraph(TextGraph):
    """A word-piece tokenizer as operations of a graph. The graph contains the vocabulary.

    Create the object inside the `tf.function` that uses it. Decoding is not supported.
    """

    def __init__(self, tokenizer: WordPieceTokenizer) -> None:
        self._tokenizer = tokenizer
        vocabulary = [tokenizer.vocabulary[i] for i in tokenizer.original_ids]
        # `True` means that the input is already split into words. `False` omits detokenization.
        model = builder.build_fast_wordpiece_model(
            vocabulary, MAX_WORD_BYTES, "##", "[UNK]", True, False
        )
        self._model = tf.constant(list(model), tf.uint8)

    def _tokenized(self, texts: Any) -> Any:
        if self._tokenizer.strip_accents:
            texts = _NORMALIZING.normalize_utf8(texts, "NFD")
            texts = tf.strings.regex_replace(texts, r"\p{Mn}", "")
        texts = tf.strings.regex_replace(texts, _SPACES, " ")
        texts = tf.strings.regex_replace(texts, _SEPARATE, r" \0 ")
        words = tf.strings.split(texts, " ")
        flat = words.values
        if self._tokenizer.lowercase:
            flat = _NORMALIZING.case_fold_utf8(flat)
        _, ids, splits, _, _ = _PIECES.fast_wordpiece_tokenize_with_offsets(
            input_values=flat, wp_model=self._model
        )
        return tf.RaggedTensor.from_row_splits(
            tf.cast(ids, tf.int32), tf.gather(splits, words.row_splits), validate=False
        )

    def decode(self, ids: Any) -> Any:
        """Raises TypeError, because no model generates word pieces."""
        raise TypeError("word pieces cannot be converted to text")


def text_graph(tokenizer: Tokenizer) -> TextGraph:
    """Returns the graph operations of a tokenizer of any kind.

    Call it inside the `tf.function` that uses the result.
    """
    if isinstance(tokenizer, WordPieceTokenizer):
        return WordPieceGraph(tokenizer)
    if isinstance(tokenizer, FeatureTokenizer):
        return FeatureGraph(tokenizer)
    return TextGraph(tokenizer)
