"""Strings to BLEU, chrF and TER, each with the signature that makes it repeatable."""

from .score import METRICS, Score, Scores, bleu, score

__all__ = ["METRICS", "Score", "Scores", "bleu", "score"]
