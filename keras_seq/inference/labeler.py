"""Base class of classifiers and taggers."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

from keras_seq.inference.predictor import open_trained_run
from keras_seq.run import Run
from keras_seq.run.models import load_model
from keras_seq.text import Labels, Tokenizer


class Labeler(ABC):
    """Base of models that map text to labels, which are in the order of the model's logits."""

    task: ClassVar[str]
    default_max_length: ClassVar[int]

    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        labels: Labels,
        max_length: int | None = None,
        batch_size: int = 32,
    ) -> None:
        self.model = model
        self._tokenizer = tokenizer
        self._labels = labels
        self._max_length = self.default_max_length if max_length is None else max_length
        self._batch_size = batch_size
        self._compile(model)

    @abstractmethod
    def _compile(self, model: Any) -> None:
        """Compiles the forward pass."""

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        which: str | int = "best",
        batch_size: int | None = None,
        notice: Callable[[str], None] | None = None,
    ) -> Self:
        """Loads the model of a run directory.

        Args:
            path: The run directory.
            which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.
            batch_size: Texts per batch; None for the setting of the run.
            notice: Receives a line for each damaged checkpoint that is skipped; by default each
                is a warning.

        Raises:
            InputError: If `path` is not a trained run of this task.
        """
        run = open_trained_run(path, cls.task, which, notice)
        return cls.of_run(run, load_model(run, which), batch_size)

    @classmethod
    def of_run(cls, run: Run, model: Any, batch_size: int | None = None) -> Self:
        """Returns the predictor of an opened run, with a model that is already loaded."""
        settings = run.settings
        size = batch_size or settings.search.batch_size
        return cls(model, run.source_tokenizer, run.labels, settings.data.max_source_length, size)
