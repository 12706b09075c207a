"""Interpolated Kneser-Ney n-gram model: the count-based baseline for language models.

    p(w | h) = max(c(hw) - D, 0) / c(h.) + D n(h.) / c(h.) p(w | h without its first token)

For n-grams of the highest order, c is the number of occurrences. For lower orders c is the number
of distinct preceding tokens, except for n-grams at the start of a line, which have no preceding
token. n(h.) is the number of distinct tokens after h. D = n1 / (n1 + 2 n2), with the numbers of
n-grams of each order that occur once and twice. The lowest order interpolates with a uniform
distribution over all tokens.

Chen and Goodman, "An Empirical Study of Smoothing Techniques for Language Modeling", 1999.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

BEGIN = -1

Gram = tuple[int, ...]


class KneserNey:
    """An n-gram model of rows of ids; each row ends with the end token.

    Args:
        rows: The training text.
        order: Maximum length of an n-gram.
        vocabulary_size: Number of distinct tokens, including the end token.
    """

    def __init__(self, rows: Iterable[Sequence[int]], order: int, vocabulary_size: int) -> None:
        self.order = order
        self.vocabulary_size = vocabulary_size
        seen: list[Counter[Gram]] = [Counter() for _ in range(order)]
        for row in rows:
            line = (BEGIN, *row)
            for end in range(2, len(line) + 1):
                for length in range(1, min(order, end) + 1):
                    seen[length - 1][line[end - length : end]] += 1
        counts = [
            Counter(gram[1:] for gram in longer)
            + Counter({gram: count for gram, count in these.items() if gram[0] == BEGIN})
            for these, longer in zip(seen, seen[1:], strict=False)
        ]
        self._counts = [*counts, seen[-1]]
        self._sums: list[Counter[Gram]] = []
        self._followers: list[Counter[Gram]] = []
        self._discounts = []
        for found in self._counts:
            sums: Counter[Gram] = Counter()
            for gram, count in found.items():
                sums[gram[:-1]] += count
            self._sums.append(sums)
            self._followers.append(Counter(gram[:-1] for gram in found))
            sizes = Counter(found.values())
            self._discounts.append(sizes[1] / (sizes[1] + 2 * sizes[2]))

    def probability(self, history: Gram, token: int) -> float:
        """p(token | last `order` - 1 tokens of `history`); every history starts with BEGIN."""
        found = 1 / self.vocabulary_size
        for length in range(min(self.order, len(history) + 1)):
            before = history[len(history) - length :]
            if not (total := self._sums[length][before]):
                break
            discount = self._discounts[length]
            count = self._counts[length][(*before, token)]
            rest = discount * self._followers[length][before] / total
            found = max(count - discount, 0) / total + rest * found
        return found

    def log_probability(self, row: Sequence[int]) -> float:
        """Log-probability of a row of ids."""
        line = (BEGIN, *row)
        return math.fsum(
            math.log(self.probability(line[max(0, place - self.order + 1) : place], line[place]))
            for place in range(1, len(line))
        )

    def check(self, rows: Sequence[Sequence[int]], tokens: Sequence[int]) -> None:
        """Raises ValueError unless the next-token probabilities sum to 1 at each step of the rows.

        Args:
            rows: Rows of ids of any text.
            tokens: All possible next tokens.
        """
        for row in rows:
            for place in range(len(row)):
                history = (BEGIN, *row[:place])[-self.order + 1 :] if self.order > 1 else ()
                total = math.fsum(self.probability(history, token) for token in tokens)
                if abs(total - 1) > 1e-9:
                    raise ValueError(f"{total} behind {history}")
