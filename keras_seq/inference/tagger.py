"""Tags of words, from a trained tagger."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import keras
import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.inference.labeler import Labeler, padded_characters
from keras_seq.inference.predictor import check_is_list
from keras_seq.models.inputs import label_inputs
from keras_seq.run import Run
from keras_seq.scoring.entities import OUTSIDE
from keras_seq.settings import SearchSettings
from keras_seq.text import EOS_ID, WordTokens, word_tokens, words_of

# Shape letters: B batch, S steps, N tags, K penalties.


class Tagged(NamedTuple):
    """The words of a text and the tag of each."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


def outside_penalty_of(run: Run) -> float:
    """Returns the penalty of the loaded checkpoint of a run; 0.0 if none was fitted."""
    return run.logs.validation_values("outside_penalty").get(run.loaded_step or 0, 0.0)


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
        outside_penalty: Number that is subtracted from the logit of the tag O, which words outside
            names have. A larger number finds more names, of which fewer are right. A trained run
            has one that is fitted on its validation text; see `fit_outside_penalty`.

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

    def __init__(self, *args: Any, outside_penalty: float = 0.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._penalty = outside_penalty

    @classmethod
    def of_run(
        cls, run: Run, model: Any, search: SearchSettings | None = None, **options: Any
    ) -> Self:
        penalty = outside_penalty_of(run)
        return super().of_run(run, model, search, outside_penalty=penalty, **options)

    def _compile(self, model: Any) -> None:
        outside = np.array([name == OUTSIDE for name in self._labels.names], "float32")

        def tags(penalties: Any, source: Any, begins: Any, characters: Any = None) -> Any:
            """Returns tags `(K, B, S)`."""
            inputs = label_inputs(source, begins, characters)
            logits = ops.cast(model(inputs, training=False)["logits"], "float32")
            weights = penalties[:, None, None, None] * ops.convert_to_tensor(outside)
            changed = logits[None] - weights  # (K, B, S, N)
            shape = backend.shape(changed)
            begins = ops.broadcast_to(inputs["begins"][None], shape[:3])
            rows = ops.reshape(changed, (-1, *shape[2:]))
            decoded = model.decode(rows, ops.reshape(begins, (-1, shape[2])))
            return ops.reshape(decoded, shape[:3])

        ranks, dtypes = [1, 2, 2], ["float32", "int32", "int32"]
        if self._reads_characters:
            ranks, dtypes = [*ranks, 3], [*dtypes, "int32"]
        self._tags = backend.compiled(tags, model.variables, ranks=ranks, dtypes=dtypes)

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Returns the tags of each text, separated by spaces, one for each word."""
        return [" ".join(result.tags) for result in self.tag(texts)]

    def tag(self, texts: Sequence[str]) -> list[Tagged]:
        """Splits each text into words at ASCII white space; returns the words and their tags."""
        return self.tag_with(texts, [self._penalty])[0]

    def tag_with(self, texts: Sequence[str], penalties: Sequence[float]) -> list[list[Tagged]]:
        """Returns what `tag` returns with each of several penalties for the tag O."""
        check_is_list("texts", texts)
        pieces: list[WordTokens] = []
        text_of_piece: list[int] = []
        rows = word_tokens(self._tokenizer, texts, whole_words=self._reads_characters)
        for number, tokens in enumerate(rows):
            for piece in _split(tokens, self._max_length):
                pieces.append(piece)
                text_of_piece.append(number)
        tags: list[list[list[str]]] = [[[] for _ in texts] for _ in penalties]
        predicted = self._predict_in_batches(pieces, functools.partial(self._predict, penalties))
        for number, piece_tags in zip(text_of_piece, predicted, strict=True):
            for rows_of_penalty, row in zip(tags, piece_tags, strict=True):
                rows_of_penalty[number] += row
        words = [tuple(words_of(text)) for text in texts]
        return [
            [Tagged(*pair) for pair in zip(words, map(tuple, rows_of_penalty), strict=True)]
            for rows_of_penalty in tags
        ]

    def _predict(
        self, penalties: Sequence[float], pieces: list[WordTokens], size: int
    ) -> Iterator[list[list[str]]]:
        source = backend.padded([[*piece.ids, EOS_ID] for piece in pieces], size)
        begins = np.zeros_like(source)  # (B, S)
        for row, piece in enumerate(pieces):
            begins[row, piece.begins] = 1
        arrays = [source, begins]
        if self._reads_characters:
            arrays.append(padded_characters(pieces, source.shape))
        tags = keras.ops.convert_to_numpy(self._tags(np.array(penalties), *arrays))
        for row, piece in enumerate(pieces):
            yield [
                [self._labels.names[tag] for tag in chosen[row, piece.begins]] for chosen in tags
            ]


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
