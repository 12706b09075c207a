"""Labels of texts, from a trained classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.inference.labeler import Labeler
from keras_seq.inference.predictor import check_is_list, encode_sources, predict_by_length
from keras_seq.text import EOS_ID

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


class Classifier(Labeler):
    """Predicts the label of each text. `Classifier.load` loads a trained model.

    The prediction for a text does not depend on the other texts.

    Args:
        model: A classifier of `keras_seq.models`.
        tokenizer: The tokenizer of the texts.
        labels: The labels, in the order of the model's logits.
        max_length: Maximum number of tokens per text, by default 400; longer texts are truncated.
        batch_size: Texts per batch.

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

    def _compile(self, model: Any) -> None:
        self._probabilities = backend.compiled(
            lambda source: ops.softmax(model({"source": source}, training=False), axis=-1),
            model.variables,
            ranks=[2],
        )

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Returns the label of each text; a blank text has a label too."""
        return [result.label for result in self.classify(texts)]

    def classify(self, texts: Sequence[str]) -> list[Classified]:
        """Returns the labels of each text with their probabilities."""
        check_is_list("texts", texts)
        ids, is_truncated = encode_sources(texts, self._tokenizer, self._max_length)
        probabilities = predict_by_length(ids, self._predict, self._batch_size)
        return [
            self._ranked(row, truncated)
            for row, truncated in zip(probabilities, is_truncated, strict=True)
        ]

    def _predict(self, ids: list[list[int]]) -> np.ndarray:
        batch = backend.padded([[*row, EOS_ID] for row in ids], self._batch_size)
        return keras.ops.convert_to_numpy(self._probabilities(batch))[: len(ids)]  # (B, N)

    def _ranked(self, probabilities: np.ndarray, truncated: bool) -> Classified:
        order = np.argsort(-probabilities, kind="stable")
        ranked = tuple((self._labels.names[i], float(probabilities[i])) for i in order)
        return Classified(*ranked[0], ranked, truncated)
