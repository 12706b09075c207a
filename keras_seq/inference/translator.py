"""Translations from a trained model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

from keras_seq.inference.hypothesis import Hypothesis, TokenTranslator
from keras_seq.inference.id_search import IdSearch
from keras_seq.inference.reranking import require_bleu_tokenizer, rerank
from keras_seq.inference.run_predictor import RunPredictor
from keras_seq.run import Run
from keras_seq.settings import SearchSettings


class Translator(TokenTranslator, RunPredictor):
    """Translates lines of text with a trained model.

    `Translator.load` loads a trained model. The first call compiles the search. The translation
    of a line does not depend on the other lines.

    Args:
        model: A model of `keras_seq.models`, or an `Ensemble`.
        source_tokenizer: The tokenizer of the source.
        target_tokenizer: The tokenizer of the target.
        search: Settings of the search.
        max_source_length: Maximum number of source tokens; longer sources are truncated.
        unknown: Whether the search may generate the unknown token, for a caller that replaces it.

    Example:

    >>> translator = keras_seq.Translator.load("runs/ende")  # doctest: +SKIP
    >>> translator(["A dog runs."])  # doctest: +SKIP
    ['Ein Hund rennt.']
    """

    task = "translate"
    own_options = frozenset({"unknown"})
    # The tokenizer of BLEU, if that chooses among candidates.
    tokenize = "auto"

    def _prepare_search(self) -> None:
        search = self.search_settings
        if search.rerank != "none":
            sizes = {"beam_size": search.candidates, "n_best": search.candidates}
            search = search.model_copy(update={"rerank": "none", **sizes})
        self._search = IdSearch(self.model, search, self.target_tokenizer, self.unknown)

    @classmethod
    def of_run(
        cls, run: Run, model: Any, search: SearchSettings | None = None, **options: Any
    ) -> Self:
        translator = cls(
            model,
            run.source_tokenizer,
            run.target_tokenizer,
            search or run.settings.search,
            run.settings.data.max_source_length,
            **options,
        )
        translator.tokenize = run.settings.score.tokenize
        if translator.search_settings.rerank == "bleu":
            require_bleu_tokenizer(translator.tokenize)
        return translator

    def translate(
        self,
        lines: Sequence[str],
        prefixes: Sequence[str] | None = None,
        *,
        to: str | None = None,
    ) -> list[list[Hypothesis]]:
        """Returns the `n_best` translations of each line, best first.

        There are fewer than `n_best` if the search found fewer, and none for a blank line.

        Args:
            lines: Lines of text.
            prefixes: The beginning of each translation, "" for none, preferably ended at the end
                of a word. Replaces `search.prefix`.
            to: The target language, for a model with several. A line may begin with the tag of
                its own, as `"<2fr> A dog runs."`.

        Raises:
            ValueError: If the numbers of prefixes and lines differ.
            InputError: If a prefix fills all of `search.max_length`; or the model has several
                target languages and a line has none, or an unknown one.
        """
        results = self.translate_lines(lines, self._search, prefixes, to)
        if self.search_settings.rerank == "none":
            return results
        return [
            rerank(hypotheses, self.search_settings, tokenize=self.tokenize)
            for hypotheses in results
        ]


def translate(
    run: str | os.PathLike[str],
    lines: Sequence[str],
    *,
    which: str | int = "best",
    to: str | None = None,
    **search: Any,
) -> list[str]:
    """Returns the best translation of each line, with the model of a run directory.

    Loads the model on each call. To translate more than once, keep a `Translator`.
    `Translator.load` explains the arguments, and `Translator.translate` explains `to`.
    """
    return Translator.load(run, which=which, **search)(lines, to=to)
