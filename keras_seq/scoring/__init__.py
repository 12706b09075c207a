"""Strings to BLEU, chrF and TER, each with the signature that makes it repeatable."""

from .comparison import TESTS, Comparison, compare, with_intervals
from .score import METRICS, Score, Scores, bleu, score

__all__ = [
    "METRICS",
    "TESTS",
    "Comparison",
    "Score",
    "Scores",
    "bleu",
    "compare",
    "score",
    "with_intervals",
]
