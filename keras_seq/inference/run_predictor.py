"""Base class of the predictors that load a run."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

from keras_seq.inference.predictor import open_trained_run
from keras_seq.run import Run
from keras_seq.run.models import load_models
from keras_seq.settings import SearchSettings
from keras_seq.text import InputError


class RunPredictor(ABC):
    """Base class of the predictors that load a run."""

    # The task that a run must have, or None if any task is allowed.
    task: ClassVar[str | None]
    supports_ensembles: ClassVar[bool] = True
    searches: ClassVar[bool] = True
    # Names of the arguments of `load` that are passed to `of_run`.
    own_options: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        which: str | int = "best",
        ensemble: Sequence[str | os.PathLike[str]] = (),
        notice: Callable[[str], None] | None = None,
        **search: Any,
    ) -> Self:
        """Loads the predictor of a run directory.

        Args:
            path: The run directory.
            which: Checkpoint: `"best"`, `"latest"`, or the step of a stored checkpoint.
            ensemble: Other run directories with the same vocabularies. The models form an ensemble
                with the model at `path`, whose settings apply. Classifiers, taggers and
                autoencoders do not support ensembles.
            notice: Receives a line for each damaged checkpoint that is skipped; by default, the
                lines are warnings.
            **search: Search settings that replace those of the run, such as `beam_size=1`; see
                `SearchSettings`. `Translator.load` also takes `unknown`. Classifiers and taggers
                take only `batch_size`, and a `LikelihoodScorer` takes nothing.

        Raises:
            InputError: If `path` is not a trained run of this task, or a run of the ensemble has
                other vocabularies.
            SettingsError: If a search setting is unknown or out of bounds.
            TypeError: If this class takes no search settings.
        """
        options = {name: search.pop(name) for name in cls.own_options & search.keys()}
        if search and not cls.searches:
            raise TypeError(f"{cls.__name__} does not search, received {', '.join(search)}.")
        run = open_trained_run(path, cls.task, which, notice)
        if ensemble and not cls.supports_ensembles:
            raise InputError(f"{path}: a run of task {cls.task!r} has no ensembles")
        settings = run.settings.with_search(search)
        model = load_models(run, ensemble, which, notice)
        return cls.of_run(run, model, settings.search, **options)

    @classmethod
    @abstractmethod
    def of_run(
        cls, run: Run, model: Any, search: SearchSettings | None = None, **options: Any
    ) -> Self:
        """Returns the predictor of an opened run, with a model that is already loaded.

        `search` replaces the search settings of the run. `options` are those of `own_options`.
        """
