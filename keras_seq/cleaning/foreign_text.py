"""Texts that are not in the language of their side of a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_seq.cleaning.character_model import letters_of
from keras_seq.cleaning.corpus_statistics import SideStatistics

# Letters that a text needs for its language to be identified.
_MIN_LETTERS = 15
# A text is in the language of the other side if the model of its own side gives it less by this
# much, in natural log-probability per character ...
_OTHER_SIDE = -0.3
# ... and in a third language if its own side gives it little, in deviations of the side, and the
# other side hardly less.
_UNLIKELY, _NO_ADVANTAGE = 4.0, 0.5


class ForeignTexts(NamedTuple):
    """Says which texts look like another language.

    Attributes:
        identified: Whether each text has enough letters.
        other: Whether each text looks like the language of the other side.
        third: Whether each text looks like the language of neither side.
    """

    identified: np.ndarray
    other: np.ndarray
    third: np.ndarray


def foreign_texts(
    texts: Sequence[str],
    side: SideStatistics,
    other: SideStatistics,
    num_letters: int,
    *,
    leave_out: bool = False,
) -> ForeignTexts:
    """Returns which texts of a side look like another language.

    Args:
        texts: The texts.
        side: Statistics of the side that the texts belong to.
        other: Statistics of the other side.
        num_letters: The number of different letters of both sides.
        leave_out: Boolean, whether the statistics were made of the texts, whose own counts are then
            left out.
    """
    own = side.model.log_probabilities(texts, num_letters, leave_out=leave_out)
    # The other side may contain the text too, if both are in one language.
    advantage = own - other.model.log_probabilities(texts, num_letters, leave_out=leave_out)
    unlikely = side.unlikeliness(texts, own) > _UNLIKELY
    identified = np.array([len(letters_of(text)) >= _MIN_LETTERS for text in texts], bool)
    is_other = identified & (advantage < _OTHER_SIDE)
    is_third = identified & ~is_other & unlikely & (advantage < _NO_ADVANTAGE)
    return ForeignTexts(identified, is_other, is_third)
