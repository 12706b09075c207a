"""Text in, text out: where tokenizers, model and search meet."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from keras_seq.inference.hypothesis import Hypothesis, best_texts, translate_lines
from keras_seq.inference.id_search import IdSearch
from keras_seq.run import Run
from keras_seq.run.models import load_models
from keras_seq.settings import SearchSettings
from keras_seq.text import Tokenizer


class Translator:
    """Translates lines of text with a trained model.

    Made by `Translator.load`, or from parts. The search is compiled at the
    first call. Lines are sorted by length into batches; a line's translation
    does not depend on its batch.

    Args:
        model: A model of `keras_seq.models`, or an `Ensemble` of them.
        source_tokenizer: Turns lines into ids.
        target_tokenizer: Turns ids into lines.
        search: Settings of the search.
        max_source_length: Longer sources are cut to so many tokens.
        unknown: Whether translations may have the unknown token, for what takes its place.

    Example:

    >>> translator = keras_seq.Translator.load("runs/ende")  # doctest: +SKIP
    >>> translator(["A dog runs."])  # doctest: +SKIP
    ['Ein Hund rennt.']
    """

    def __init__(
        self,
        model: Any,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        search: SearchSettings,
        max_source_length: int = 200,
        unknown: bool = False,
    ) -> None:
        self.model = model
        self._source_tokenizer = source_tokenizer
        self._target_tokenizer = target_tokenizer
        self._max_source_length = max_source_length
        self._search = IdSearch(model, search, target_tokenizer, unknown)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        which: str | int = "best",
        ensemble: Sequence[str | os.PathLike[str]] = (),
        unknown: bool = False,
        notice: Callable[[str], None] | None = None,
        **search: Any,
    ) -> Translator:
        """Loads the translator of a run directory.

        Args:
            path: The run directory.
            which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.
            ensemble: Directories of other runs with the same vocabularies, that translate
                together with it; its settings count.
            unknown: See `Translator`.
            notice: Called with a line for each damaged checkpoint passed over;
                by default it is a warning.
            **search: Settings of the search to use in place of the run's, such
                as `beam_size=1`; see `SearchSettings`.

        Raises:
            InputError: If `path` is not a run with a trained model, or a run of the
                ensemble has other vocabularies.
            SettingsError: If a search setting is unknown or out of bounds.
        """
        run = Run.open(path, notice=notice)
        run.require_task("translate")
        settings = run.settings.with_search(search)
        run.require_weights(which)
        return cls(
            load_models(run, ensemble, which, notice),
            run.source_tokenizer,
            run.target_tokenizer,
            settings.search,
            settings.data.max_source_length,
            unknown,
        )

    def __call__(self, lines: Sequence[str]) -> list[str]:
        """Translates lines; a blank line stays blank.

        Args:
            lines: Lines of text.

        Returns:
            As many lines, the best translation of each.
        """
        return best_texts(self.translate(lines))

    def translate(
        self, lines: Sequence[str], prefixes: Sequence[str] | None = None
    ) -> list[list[Hypothesis]]:
        """Translates lines into their n best translations.

        Args:
            lines: Lines of text.
            prefixes: What the translation of each line begins with, "" for nothing; best
                ended where a word ends. In place of `search.prefix`.

        Returns:
            For each line its translations, best first: `n_best` of them, or
            fewer where the search found fewer; none for a blank line.

        Raises:
            TypeError: If `lines` or `prefixes` is one string.
            ValueError: If there are not as many prefixes as lines.
            InputError: If a prefix fills all of `search.max_length`.
        """
        return translate_lines(
            lines,
            self._source_tokenizer,
            self._target_tokenizer,
            self._max_source_length,
            self._search,
            prefixes,
        )


def translate(
    run: str | os.PathLike[str], lines: Sequence[str], *, which: str | int = "best", **search: Any
) -> list[str]:
    """Translates lines with the model of a run directory.

    Loads the model on each call. To translate more than once, keep a `Translator`.

    Args:
        run: The run directory.
        lines: Lines of text.
        which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.
        **search: Search settings that replace those of the run; see `SearchSettings`.

    Returns:
        The best translation of each line; "" for a blank line.

    Raises:
        InputError: If `run` is not a run with a trained model.
        SettingsError: If a search setting is unknown or out of bounds.
    """
    return Translator.load(run, which=which, **search)(lines)
