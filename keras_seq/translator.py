"""Text in, text out: where tokenizers, model and search meet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_seq import backend
from keras_seq.data.ids import EOS, PAD
from keras_seq.modelling import load_model
from keras_seq.run import Run
from keras_seq.search import SearchResult, beam_search
from keras_seq.settings import SearchSettings, load_settings
from keras_seq.text import Tokenizer

# A piece of a vocabulary is seldom longer, so a line clipped to this many characters for each
# token allowed loses nothing that the limit on tokens would have kept.
_CHARACTERS_PER_TOKEN = 50


class Hypothesis(NamedTuple):
    """One translation.

    Attributes:
        text: The translation.
        score: Its log-probability, normalised by length as the search was told.
        truncated: Whether the source or the translation met its length limit.
    """

    text: str
    score: float
    truncated: bool


class Translator:
    """Translates lines of text with a trained model.

    Made by `Translator.load`, or from parts. The search is compiled at the
    first call. Lines are sorted by length into batches; a line's translation
    does not depend on its batch.

    Args:
        model: A model of `keras_seq.models`.
        source_tokenizer: Turns lines into ids.
        target_tokenizer: Turns ids into lines.
        search: Settings of the search.
        max_source_length: Longer sources are cut to so many tokens.

    Example:

    >>> translator = keras_seq.Translator.load("runs/ende")  # doctest: +SKIP
    >>> translator(["A dog runs."])  # doctest: +SKIP
    ['Ein Hund rennt.']
    """

    def __init__(
        self,
        model: keras.Model,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        search: SearchSettings,
        max_source_length: int = 200,
    ) -> None:
        self._source_tokenizer = source_tokenizer
        self._target_tokenizer = target_tokenizer
        self._search_settings = search
        self._max_source_length = max_source_length
        options = search.model_dump(exclude={"batch_size"})
        self._search = backend.compiled(
            lambda source: beam_search(model, source, **options), model.variables, ranks=[2]
        )

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        which: str = "best",
        notice: Callable[[str], None] | None = None,
        **search: Any,
    ) -> Translator:
        """Loads the translator of a run directory.

        Args:
            path: The run directory.
            which: `"best"` or `"latest"` checkpoint.
            notice: Called with a line for each damaged checkpoint passed over;
                by default it is a warning.
            **search: Settings of the search to use in place of the run's, such
                as `beam_size=1`; see `SearchSettings`.

        Raises:
            InputError: If `path` is not a run with a trained model.
            SettingsError: If a search setting is unknown or out of bounds.
        """
        run = Run.open(path, notice=notice)
        settings = run.settings
        if search:
            overrides = {f"search.{key}": value for key, value in search.items()}
            settings = load_settings(base=settings.to_dict(), overrides=overrides)
        run.require_weights()
        return cls(
            load_model(run, which),
            run.source_tokenizer,
            run.target_tokenizer,
            settings.search,
            settings.data.max_source_length,
        )

    def __call__(self, lines: Sequence[str]) -> list[str]:
        """Translates lines; a blank line stays blank.

        Args:
            lines: Lines of text.

        Returns:
            As many lines, the best translation of each.
        """
        return [hypotheses[0].text if hypotheses else "" for hypotheses in self.translate(lines)]

    def translate(self, lines: Sequence[str]) -> list[list[Hypothesis]]:
        """Translates lines into their n best translations.

        Args:
            lines: Lines of text.

        Returns:
            For each line its translations, best first: `n_best` of them, or
            fewer where the search found fewer; none for a blank line.

        Raises:
            TypeError: If `lines` is one string.
        """
        if isinstance(lines, str):
            raise TypeError("`lines` must be a list of strings, received one string; pass [line].")
        longest = self._max_source_length
        clipped = [line[: longest * _CHARACTERS_PER_TOKEN] for line in lines]
        ids = self._source_tokenizer.encode(clipped)
        cut = [
            len(tokens) > longest or len(text) < len(line)
            for tokens, text, line in zip(ids, clipped, lines, strict=True)
        ]
        results: list[list[Hypothesis]] = [[] for _ in lines]
        # Stable, so equal inputs in equal order make equal batches.
        order = sorted((i for i, tokens in enumerate(ids) if tokens), key=lambda i: -len(ids[i]))
        size = self._search_settings.batch_size
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            batch = self._pad([ids[i][:longest] for i in rows])
            found = SearchResult(*map(keras.ops.convert_to_numpy, self._search(batch)))
            for row, i in enumerate(rows):
                results[i] = self._hypotheses(SearchResult(*(part[row] for part in found)), cut[i])
        return results

    def _pad(self, sources: Sequence[Sequence[int]]) -> np.ndarray:
        rows, width = len(sources), max(map(len, sources)) + 1
        if backend.wants_static_shapes():
            rows, width = self._search_settings.batch_size, -(-width // 16) * 16
        batch = np.full((rows, width), PAD, np.int32)
        for row, source in enumerate(sources):
            batch[row, : len(source) + 1] = [*source, EOS]
        return batch

    def _hypotheses(self, row: SearchResult, cut: bool) -> list[Hypothesis]:
        found = [n for n in range(len(row.lengths)) if row.lengths[n]]
        texts = self._target_tokenizer.decode(
            [_real(row.tokens[n, : row.lengths[n]]) for n in found]
        )
        return [
            Hypothesis(text, float(row.scores[n]), cut or bool(row.truncated[n]))
            for text, n in zip(texts, found, strict=True)
        ]


def _real(tokens: Iterable[int]) -> list[int]:
    return [int(token) for token in tokens if token != EOS]
