"""Interface of `keras_seq.Translator` for engines that do not import Keras."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from keras_seq.inference.hypothesis import Hypothesis, best_texts


class LineTranslator(ABC):
    """Translates lines of text."""

    def __call__(self, lines: Sequence[str]) -> list[str]:
        """Returns the best translation of each line; a blank line stays blank."""
        return best_texts(self.translate(lines))

    @abstractmethod
    def translate(self, lines: Sequence[str]) -> list[list[Hypothesis]]:
        """Returns up to `n_best` translations of each line, best first; none for a blank line."""
