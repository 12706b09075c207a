"""Interface of `keras_seq.Translator` for engines that do not import Keras."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from keras_seq.inference.hypothesis import Hypothesis, best_texts


class LineTranslator(ABC):
    """Translates lines of text."""

    def __call__(self, lines: Sequence[str]) -> list[str]:
        """Returns the best translation of each line; a blank line stays blank.

        Args:
            lines: Lines of text.
        """
        return best_texts(self.translate(lines))

    @abstractmethod
    def translate(self, lines: Sequence[str]) -> list[list[Hypothesis]]:
        """Returns the n best translations of each line.

        Args:
            lines: Lines of text.

        Returns:
            For each line, up to `n_best` translations, best first; none for a blank line.

        Raises:
            TypeError: `lines` is a single string.
            InputError: The engine fails.
        """
