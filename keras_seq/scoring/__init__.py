"""Strings to BLEU, chrF and TER, each with the signature that makes it repeatable."""

from .comparison import TESTS, Comparison, compare, with_intervals
from .score import METRICS, Score, Scores, bleu, score
from .sentence import sentence_chrf

__all__ = [
    "METRICS",
    "TESTS",
    "Comparison",
    "Score",
    "Scores",
    "bleu",
    "compare",
    "score",
    "sentence_chrf",
    "with_intervals",
]
