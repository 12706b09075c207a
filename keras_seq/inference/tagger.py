"""Tags of words, by a trained tagger."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.data.ids import EOS
from keras_seq.run import Run
from keras_seq.run.models import load_model
from keras_seq.text import Labels, Tokenizer, WordTokens, word_tokens, words_of

# Shape letters: B batch, S steps.


class Tagged(NamedTuple):
    """A text and its tags.

    Attributes:
        words: Its words.
        tags: The tag of each.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]


class Tagger:
    """Gives each word of a text a tag. Made by `Tagger.load`, or from parts.

    A text longer than the limit is tagged in pieces, each by itself. What it says of
    a text does not depend on the others.

    Args:
        model: A tagger of `keras_seq.models`.
        tokenizer: Turns words into ids.
        labels: What its logits stand for, in their order.
        max_length: Tokens of a piece, at most.
        batch_size: Pieces at a time.

    Example:

    >>> from keras_seq.models import RecurrentTagger
    >>> tokenizer = Tokenizer.train(["Ada lives here", "a dog"], size=280)
    >>> model = RecurrentTagger(tokenizer.vocabulary_size, 2, embedding_units=4, units=4)
    >>> tagger = Tagger(model, tokenizer, Labels(["O", "PER"]))
    >>> tagged = tagger.tag(["Ada lives  here", ""])  # of a model that has learned nothing
    >>> tagged[0].words, len(tagged[0].tags), tagged[1].tags
    (('Ada', 'lives', 'here'), 3, ())
    >>> trained = keras_seq.Tagger.load("runs/tag")  # doctest: +SKIP
    >>> trained(["Ada lives in London"])  # doctest: +SKIP
    ['B-PER O O B-LOC']
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        labels: Labels,
        max_length: int = 200,
        batch_size: int = 32,
    ) -> None:
        self.model = model
        self._tokenizer = tokenizer
        self._labels = labels
        self._max_length = max_length
        self._batch_size = batch_size

        def tags(source: Any, begins: Any) -> Any:
            inputs = {"source": source, "begins": ops.not_equal(begins, 0)}
            return model(inputs, training=False)["tags"]

        self._tags = backend.compiled(tags, model.variables, ranks=[2, 2])

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        which: str | int = "best",
        batch_size: int | None = None,
        notice: Callable[[str], None] | None = None,
    ) -> Tagger:
        """Loads the tagger of a run directory.

        Args:
            path: The run directory, of task "tag".
            which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.
            batch_size: Texts at a time, in place of the run's.
            notice: Called with a line for each damaged checkpoint passed over;
                by default it is a warning.

        Raises:
            InputError: If `path` is not a run with a trained tagger.
        """
        run = Run.open(path, notice=notice)
        run.require_task("tag")
        run.require_weights(which)
        return cls.of_run(run, load_model(run, which), batch_size)

    @classmethod
    def of_run(cls, run: Run, model: Any, batch_size: int | None = None) -> Tagger:
        """The tagger of an opened run, with a model of its own."""
        settings = run.settings
        size = batch_size or settings.search.batch_size
        return cls(model, run.source_tokenizer, run.labels, settings.data.max_source_length, size)

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """The tags of each text, one for each word, with spaces between."""
        return [" ".join(found.tags) for found in self.tag(texts)]

    def tag(self, texts: Sequence[str]) -> list[Tagged]:
        """The tags of texts.

        Args:
            texts: Lines of text; white space of ASCII parts words.

        Returns:
            As many `Tagged`; a blank text has no words.

        Raises:
            TypeError: If `texts` is one string.
        """
        if isinstance(texts, str):
            raise TypeError("`texts` must be a list of strings, received one; pass [text].")
        pieces: list[tuple[int, WordTokens]] = []
        for place, tokens in enumerate(word_tokens(self._tokenizer, texts)):
            pieces += [(place, piece) for piece in _pieces(tokens, self._max_length)]
        order = sorted(range(len(pieces)), key=lambda i: -len(pieces[i][1].ids))
        found: dict[int, list[str]] = {}
        for start in range(0, len(order), self._batch_size):
            rows = order[start : start + self._batch_size]
            tags = self._batch_tags([pieces[i][1] for i in rows])
            found |= dict(zip(rows, tags, strict=True))
        every: list[list[str]] = [[] for _ in texts]
        for number, (place, _) in enumerate(pieces):
            every[place] += found[number]
        return [
            Tagged(tuple(words_of(text)), tuple(tags))
            for text, tags in zip(texts, every, strict=True)
        ]

    def _batch_tags(self, pieces: Sequence[WordTokens]) -> Iterator[list[str]]:
        source = backend.padded([[*piece.ids, EOS] for piece in pieces], self._batch_size)
        begins = np.zeros_like(source)
        for row, piece in enumerate(pieces):
            begins[row, piece.begins] = 1
        tags = keras.ops.convert_to_numpy(self._tags(source, begins))
        for row, piece in enumerate(pieces):
            yield [self._labels.names[tags[row, place]] for place in piece.begins]


def _pieces(tokens: WordTokens, length: int) -> Iterator[WordTokens]:
    """Whole words of up to so many tokens together; of a longer word as many tokens."""
    ends = [*tokens.begins, len(tokens.ids)][1:]
    ids: list[int] = []
    begins: list[int] = []
    for begin, end in zip(tokens.begins, ends, strict=True):
        word = tokens.ids[begin : min(end, begin + length)]
        if begins and len(ids) + len(word) > length:
            yield WordTokens(ids, begins)
            ids, begins = [], []
        begins.append(len(ids))
        ids = ids + word
    if begins:
        yield WordTokens(ids, begins)
