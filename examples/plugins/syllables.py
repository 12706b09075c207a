"""A vocabulary of your own: syllables, which end after their vowels.

keras-seq train runs/mine --pairs train.tsv --import syllables.py --set tokenizer.kind=syllables
"""

import math
import re
from collections import Counter

from keras_seq import register_vocabulary

SYLLABLE = re.compile(r"[^aeiou]*[aeiou]+|[^aeiou]+$")


@register_vocabulary("syllables")
def learn_syllables(lines, size):
    """The most frequent syllables; a score is the logarithm of the relative frequency."""
    counts = Counter(
        piece for line in lines for word in line.split() for piece in SYLLABLE.findall(f" {word}")
    )
    # Other entries are special ids, bytes, and the space.
    frequent = counts.most_common(size - 261)
    total = sum(count for _, count in frequent)
    return [(piece, math.log(count / total)) for piece, count in frequent]
