"""Text from a language model: prompt -> ids -> search -> text."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from keras_seq.inference.hypothesis import Hypothesis, hypotheses_of
from keras_seq.inference.id_search import IdSearch
from keras_seq.run import Run
from keras_seq.run.models import load_models
from keras_seq.settings import SearchSettings
from keras_seq.text import Tokenizer


class Generator:
    """Goes on from prompts with a trained language model.

    Made by `Generator.load`, or from parts. The search is compiled at the first
    call. What a prompt gives does not depend on the others.

    Args:
        model: A language model of `keras_seq.models`, or an `Ensemble` of them.
        tokenizer: Turns lines into ids and back.
        search: Settings of the search.

    Example:

    >>> generator = keras_seq.Generator.load("runs/lm", top_p=0.9, seed=1)  # doctest: +SKIP
    >>> generator(["A man"])  # doctest: +SKIP
    ['A man is playing a guitar on a bench.']
    """

    def __init__(self, model: Any, tokenizer: Tokenizer, search: SearchSettings) -> None:
        self.model = model
        self._tokenizer = tokenizer
        self._search = IdSearch(model, search, tokenizer)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        which: str | int = "best",
        ensemble: Sequence[str | os.PathLike[str]] = (),
        notice: Callable[[str], None] | None = None,
        **search: Any,
    ) -> Generator:
        """Loads the generator of a run directory.

        Args:
            path: The run directory, of task "language-model".
            which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.
            ensemble: Directories of other runs with the same vocabulary, that generate
                together with it; its settings count.
            notice: Called with a line for each damaged checkpoint passed over;
                by default it is a warning.
            **search: Settings of the search to use in place of the run's, such
                as `top_p=0.9`; see `SearchSettings`.

        Raises:
            InputError: If `path` is not a run with a trained language model.
            SettingsError: If a search setting is unknown or out of bounds.
        """
        run = Run.open(path, notice=notice)
        run.require_task("language-model")
        settings = run.settings.with_search(search)
        run.require_weights(which)
        return cls(load_models(run, ensemble, which, notice), run.target_tokenizer, settings.search)

    def __call__(self, prompts: Sequence[str]) -> list[str]:
        """Goes on from prompts, each to its best or first text.

        Args:
            prompts: Lines of text, "" to begin with nothing.

        Returns:
            As many lines, the prompts included.
        """
        return [found[0].text if found else "" for found in self.generate(prompts)]

    def generate(self, prompts: Sequence[str]) -> list[list[Hypothesis]]:
        """Goes on from prompts to `n_best` texts each.

        Args:
            prompts: Lines of text, best ended where a word ends; "" to begin with nothing.

        Returns:
            For each prompt its texts, the likeliest first with a beam; the prompts are
            included, and their log-probability too.

        Raises:
            TypeError: If `prompts` is one string.
            InputError: If a prompt fills all of `search.max_length`.
        """
        if isinstance(prompts, str):
            raise TypeError("`prompts` must be a list of strings, received one; pass [prompt].")
        ids = self._tokenizer.encode(prompts)
        # Prompts of like length go together; the model has no source but the end of one.
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        every = self._search([[] for _ in order], [ids[i] for i in order])
        results: list[list[Hypothesis]] = [[] for _ in ids]
        for i, found in zip(order, every, strict=True):
            results[i] = hypotheses_of(found, self._tokenizer)
        return results
