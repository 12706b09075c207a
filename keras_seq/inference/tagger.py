"""Tags of words, from a trained tagger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_seq import backend
from keras_seq.inference.labeler import Labeler, padded_characters
from keras_seq.inference.predictor import check_is_list, predict_by_length
from keras_seq.models.inputs import label_inputs
from keras_seq.text import EOS_ID, WordTokens, word_tokens, words_of

# Shape letters: B batch, S steps.


class Tagged(NamedTuple):
    """The words of a text and the tag of each."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


class Tagger(Labeler):
    """Predicts a tag for each word of a text. `Tagger.load` loads a trained model.

    A text above the maximum length is split into pieces that are tagged independently. The
    prediction for a text does not depend on the other texts.

    Args:
        model: A tagger of `keras_seq.models`.
        tokenizer: The tokenizer of the texts.
        labels: The tags, in the order of the model's logits.
        max_length: Maximum number of tokens per piece, by default 200.
        batch_size: Pieces per batch.

    Example:

    >>> from keras_seq.models import RecurrentTextEncoder, TextTagger
    >>> from keras_seq.text import Labels, Tokenizer
    >>> tokenizer = Tokenizer.train(["Ada lives here", "a dog"], size=280)
    >>> encoder = RecurrentTextEncoder(tokenizer.vocabulary_size, embedding_units=4, units=4)
    >>> model = TextTagger(encoder, 2)
    >>> tagger = Tagger(model, tokenizer, Labels(["O", "PER"]))
    >>> tagged = tagger.tag(["Ada lives  here", ""])  # from a model that is not trained
    >>> tagged[0].words, len(tagged[0].tags), tagged[1].tags
    (('Ada', 'lives', 'here'), 3, ())
    >>> trained = keras_seq.Tagger.load("runs/tag")  # doctest: +SKIP
    >>> trained(["Ada lives in London"])  # doctest: +SKIP
    ['B-PER O O B-LOC']
    """

    task = "tag"
    default_max_length = 200

    def _compile(self, model: Any) -> None:
        def tags(*arrays: Any) -> Any:
            return model(label_inputs(*arrays), training=False)["tags"]

        ranks = [2, 2, 3] if self._reads_characters else [2, 2]
        self._tags = backend.compiled(tags, model.variables, ranks=ranks)

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Returns the tags of each text, separated by spaces, one for each word."""
        return [" ".join(result.tags) for result in self.tag(texts)]

    def tag(self, texts: Sequence[str]) -> list[Tagged]:
        """Splits each text into words at ASCII white space; returns the words and their tags."""
        check_is_list("texts", texts)
        pieces: list[WordTokens] = []
        text_of_piece: list[int] = []
        rows = word_tokens(self._tokenizer, texts, whole_words=self._reads_characters)
        for number, tokens in enumerate(rows):
            for piece in _split(tokens, self._max_length):
                pieces.append(piece)
                text_of_piece.append(number)
        tags: list[list[str]] = [[] for _ in texts]
        predicted = predict_by_length(
            pieces, self._predict, self._batch_size, length=lambda piece: len(piece.ids)
        )
        for number, piece_tags in zip(text_of_piece, predicted, strict=True):
            tags[number] += piece_tags
        return [
            Tagged(tuple(words_of(text)), tuple(row)) for text, row in zip(texts, tags, strict=True)
        ]

    def _predict(self, pieces: list[WordTokens]) -> Iterator[list[str]]:
        source = backend.padded([[*piece.ids, EOS_ID] for piece in pieces], self._batch_size)
        begins = np.zeros_like(source)  # (B, S)
        for row, piece in enumerate(pieces):
            begins[row, piece.begins] = 1
        arrays = [source, begins]
        if self._reads_characters:
            arrays.append(padded_characters(pieces, source.shape))
        tags = keras.ops.convert_to_numpy(self._tags(*arrays))
        for row, piece in enumerate(pieces):
            yield [self._labels.names[tags[row, step]] for step in piece.begins]


def _split(tokens: WordTokens, length: int) -> Iterator[WordTokens]:
    """Splits a text at words into pieces of at most `length` tokens; truncates longer words."""
    ends = [*tokens.begins, len(tokens.ids)][1:]
    piece = WordTokens([], [], [])
    for begin, end, word in zip(tokens.begins, ends, tokens.words, strict=True):
        ids = tokens.ids[begin : min(end, begin + length)]
        if piece.words and len(piece.ids) + len(ids) > length:
            yield piece
            piece = WordTokens([], [], [])
        piece.begins.append(len(piece.ids))
        piece.ids.extend(ids)
        piece.words.append(word)
    if piece.words:
        yield piece
