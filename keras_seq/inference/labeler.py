"""Base class of classifiers and taggers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from keras_seq.inference.predictor import predict_by_length
from keras_seq.inference.row_memory import encoding_memory
from keras_seq.inference.run_predictor import RunPredictor
from keras_seq.run import Run
from keras_seq.run.memory import fitting_rows
from keras_seq.settings import SearchSettings
from keras_seq.text import WORD_CHARACTERS, Labels, Tokenizer, WordTokens


def padded_characters(rows: Sequence[WordTokens], shape: tuple[int, ...]) -> np.ndarray:
    """Returns the characters of words, int32 `(B, S, C)`, for token ids of a shape `(B, S)`."""
    characters = np.zeros((*shape, WORD_CHARACTERS), np.int32)
    for number, row in enumerate(rows):
        points = np.array(row.characters(), np.int32).reshape(-1, WORD_CHARACTERS)
        characters[number, : len(points)] = points
    return characters


class Labeler(RunPredictor):
    """Base class of predictors of labels. Labels are in the order of the logits of the model."""

    supports_ensembles = False
    searches = False
    own_options = frozenset({"batch_size"})
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
        self._reads_characters = "characters" in model.input
        self._compile(model)

    @abstractmethod
    def _compile(self, model: Any) -> None:
        """Compiles the forward pass."""

    def _predict_in_batches(
        self, rows: Sequence[WordTokens], predict: Callable[[list[WordTokens], int], Iterable[Any]]
    ) -> list[Any]:
        """Predicts in batches that fit into the memory; see `predict_by_length`.

        `predict` maps a batch, and the number of rows to pad it to, to one output for each row.
        """
        longest = 1 + max((len(row.ids) for row in rows), default=0)
        size = fitting_rows(
            encoding_memory(self.model, longest),
            self._batch_size,
            1,
            f"the attention among the {longest:,} tokens of a text",
            "use shorter texts",
        )
        return predict_by_length(
            rows, lambda batch: predict(batch, size), size, length=lambda row: len(row.ids)
        )

    @classmethod
    def of_run(
        cls, run: Run, model: Any, search: SearchSettings | None = None, **options: Any
    ) -> Self:
        size = options.pop("batch_size", None) or (search or run.settings.search).batch_size
        length = run.settings.data.max_source_length
        return cls(model, run.source_tokenizer, run.labels, length, size, **options)
