"""Labels of texts, by a trained classifier."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.data.ids import EOS
from keras_seq.inference.hypothesis import encode_sources
from keras_seq.run import Run
from keras_seq.run.models import load_model
from keras_seq.text import Labels, Tokenizer

# Shape letters: B batch, S steps, N labels.


class Classified(NamedTuple):
    """What a classifier says of a text.

    Attributes:
        label: The likeliest label.
        probability: How likely it is.
        ranked: All labels with their probabilities, the likeliest first.
        truncated: Whether the end of the text was not read.
    """

    label: str
    probability: float
    ranked: tuple[tuple[str, float], ...]
    truncated: bool


class Classifier:
    """Gives texts their labels. Made by `Classifier.load`, or from parts.

    What it says of a text does not depend on the others.

    Args:
        model: A classifier of `keras_seq.models`.
        tokenizer: Turns texts into ids.
        labels: What its logits stand for, in their order.
        max_length: Of longer texts so many tokens are read.
        batch_size: Texts at a time.

    Example:

    >>> from keras_seq.models import BagClassifier
    >>> tokenizer = Tokenizer.train(["a good film", "a bad film"], size=270)
    >>> model = BagClassifier(tokenizer.vocabulary_size, 2, embedding_units=4, hidden_units=0)
    >>> classifier = Classifier(model, tokenizer, Labels(["bad", "good"]))
    >>> found = classifier.classify(["a good film"])[0]  # of a model that has learned nothing
    >>> sorted(label for label, _ in found.ranked), found.truncated
    (['bad', 'good'], False)
    >>> trained = keras_seq.Classifier.load("runs/sentiment")  # doctest: +SKIP
    >>> trained(["What a film!"])  # doctest: +SKIP
    ['good']
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        labels: Labels,
        max_length: int = 400,
        batch_size: int = 32,
    ) -> None:
        self.model = model
        self._tokenizer = tokenizer
        self._labels = labels
        self._max_length = max_length
        self._batch_size = batch_size

        def probabilities(source: Any) -> Any:
            return ops.softmax(model({"source": source}, training=False), axis=-1)

        self._probabilities = backend.compiled(probabilities, model.variables, ranks=[2])

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        which: str | int = "best",
        batch_size: int | None = None,
        notice: Callable[[str], None] | None = None,
    ) -> Classifier:
        """Loads the classifier of a run directory.

        Args:
            path: The run directory, of task "classify".
            which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.
            batch_size: Texts at a time, in place of the run's.
            notice: Called with a line for each damaged checkpoint passed over;
                by default it is a warning.

        Raises:
            InputError: If `path` is not a run with a trained classifier.
        """
        run = Run.open(path, notice=notice)
        run.require_task("classify")
        run.require_weights(which)
        return cls.of_run(run, load_model(run, which), batch_size)

    @classmethod
    def of_run(cls, run: Run, model: Any, batch_size: int | None = None) -> Classifier:
        """The classifier of an opened run, with a model of its own."""
        settings = run.settings
        size = batch_size or settings.search.batch_size
        return cls(model, run.source_tokenizer, run.labels, settings.data.max_source_length, size)

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """The label of each text; a blank one has one, too."""
        return [found.label for found in self.classify(texts)]

    def classify(self, texts: Sequence[str]) -> list[Classified]:
        """The labels of texts with their probabilities.

        Args:
            texts: Lines of text.

        Returns:
            As many `Classified`.

        Raises:
            TypeError: If `texts` is one string.
        """
        if isinstance(texts, str):
            raise TypeError("`texts` must be a list of strings, received one; pass [text].")
        ids, cut = encode_sources(texts, self._tokenizer, self._max_length)
        # Stable, so equal inputs in equal order make equal batches.
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        found: dict[int, Classified] = {}
        for start in range(0, len(order), self._batch_size):
            rows = order[start : start + self._batch_size]
            batch = backend.padded([[*ids[i], EOS] for i in rows], self._batch_size)
            every = keras.ops.convert_to_numpy(self._probabilities(batch))  # (B, N)
            found |= {i: self._ranked(every[row], cut[i]) for row, i in enumerate(rows)}
        return [found[i] for i in range(len(ids))]

    def _ranked(self, probabilities: np.ndarray, truncated: bool) -> Classified:
        order = np.argsort(-probabilities, kind="stable")
        ranked = tuple((self._labels.names[i], float(probabilities[i])) for i in order)
        return Classified(*ranked[0], ranked, truncated)
