"""Labels of texts, from a trained classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import keras
import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.inference.calibration import with_temperature
from keras_seq.inference.labeler import Labeler, padded_characters
from keras_seq.inference.predictor import (
    CHARACTERS_PER_TOKEN,
    check_is_list,
    encode_sources,
)
from keras_seq.models.inputs import label_inputs
from keras_seq.run import Run
from keras_seq.settings import SearchSettings
from keras_seq.text import EOS_ID, WordTokens, word_tokens

# Shape letters: B batch, S steps, N labels.


class Classified(NamedTuple):
    """The most probable label of a text and its probability.

    `ranked` has all labels with their probabilities, the most probable first. `truncated` is True
    if the text was truncated at its maximum length.
    """

    label: str
    probability: float
    ranked: tuple[tuple[str, float], ...]
    truncated: bool


def temperature_of(run: Run) -> float:
    """Returns the temperature of the loaded checkpoint of a run; 1.0 if none was fitted."""
    value = run.logs.validation_values("temperature").get(run.loaded_step or 0, 1.0)
    return value if value > 0 else 1.0


class Classifier(Labeler):
    """Predicts the label of each text. `Classifier.load` loads a trained model.

    The prediction for a text does not depend on the other texts.

    Args:
        model: A classifier of `keras_seq.models`.
        tokenizer: The tokenizer of the texts.
        labels: The labels, in the order of the model's logits.
        max_length: Maximum number of tokens per text, by default 400; longer texts are truncated.
        batch_size: Texts per batch.
        temperature: Positive number that the logits are divided by; see `fit_temperature`. A
            trained run has one that is fitted on its validation text.

    Example:

    >>> from keras_seq.models import BagTextEncoder, TextClassifier
    >>> from keras_seq.text import Labels, Tokenizer
    >>> tokenizer = Tokenizer.train(["a good film", "a bad film"], size=270)
    >>> encoder = BagTextEncoder(tokenizer.vocabulary_size, embedding_units=4)
    >>> model = TextClassifier(encoder, 2)
    >>> classifier = Classifier(model, tokenizer, Labels(["bad", "good"]))
    >>> result = classifier.classify(["a good film"])[0]  # from a model that is not trained
    >>> sorted(label for label, _ in result.ranked), result.truncated
    (['bad', 'good'], False)
    >>> trained = keras_seq.Classifier.load("runs/sentiment")  # doctest: +SKIP
    >>> trained(["What a film!"])  # doctest: +SKIP
    ['good']
    """

    task = "classify"
    default_max_length = 400

    def __init__(self, *args: Any, temperature: float = 1.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._temperature = temperature

    @classmethod
    def of_run(
        cls, run: Run, model: Any, search: SearchSettings | None = None, **options: Any
    ) -> Self:
        return super().of_run(run, model, search, temperature=temperature_of(run), **options)

    def _compile(self, model: Any) -> None:
        def log_probabilities(source: Any, characters: Any = None) -> Any:
            logits = model(label_inputs(source, characters=characters), training=False)
            return ops.log_softmax(logits, axis=-1)

        ranks = [2, 3] if self._reads_characters else [2]
        self._log_probabilities = backend.compiled(log_probabilities, model.variables, ranks)

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Returns the label of each text; a blank text has a label too."""
        return [result.label for result in self.classify(texts)]

    def classify(self, texts: Sequence[str]) -> list[Classified]:
        """Returns the labels of each text with their probabilities."""
        log_probabilities, is_truncated = self.log_probabilities(texts)
        probabilities = with_temperature(log_probabilities, self._temperature)
        return [
            self._ranked(row, truncated)
            for row, truncated in zip(probabilities, is_truncated, strict=True)
        ]

    def log_probabilities(self, texts: Sequence[str]) -> tuple[np.ndarray, list[bool]]:
        """Returns log-probabilities `(B, N)` at temperature 1, and True where a text is truncated.

        The classes are in the order of the labels.
        """
        check_is_list("texts", texts)
        length = self._max_length
        if self._reads_characters:
            clipped = [text[: length * CHARACTERS_PER_TOKEN] for text in texts]
            words = word_tokens(self._tokenizer, clipped, whole_words=True)
            is_truncated = [
                len(row.ids) > length or len(short) < len(text)
                for row, short, text in zip(words, clipped, texts, strict=True)
            ]
            tokens = [row.first(length) for row in words]
        else:
            ids, is_truncated = encode_sources(texts, self._tokenizer, length)
            tokens = [WordTokens(row, [], []) for row in ids]
        rows = self._predict_in_batches(tokens, self._predict)
        return np.array(rows, np.float32).reshape(len(rows), len(self._labels.names)), is_truncated

    def _predict(self, rows: list[WordTokens], size: int) -> np.ndarray:
        arrays = [backend.padded([[*row.ids, EOS_ID] for row in rows], size)]
        if self._reads_characters:
            arrays.append(padded_characters(rows, arrays[0].shape))
        return keras.ops.convert_to_numpy(self._log_probabilities(*arrays))[: len(rows)]  # (B, N)

    def _ranked(self, probabilities: np.ndarray, truncated: bool) -> Classified:
        order = np.argsort(-probabilities, kind="stable")
        ranked = tuple((self._labels.names[i], float(probabilities[i])) for i in order)
        return Classified(*ranked[0], ranked, truncated)
