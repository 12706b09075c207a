"""Scores of text with signatures for reproduction, and scores of labels and tags."""

from .bleu_tokenizers import TOKENIZERS, bleu_tokenizer
from .comparison import TESTS, Comparison, compare, scores_by_name, with_intervals
from .counts import Counts
from .detections import DetectionCounts, count_detections, detections
from .entities import EntityScores, TagScores, are_entity_tags, entities, entity_scores, tag_scores
from .error_rate import Errors, character_errors, word_errors
from .labels import LabelScores, label_scores
from .metric_choice import MetricChoice, choose_bleu_tokenizer, choose_metric
from .pairwise import PAIRWISE_METRICS, pairwise_scores
from .score import ALL_METRICS, LINE_METRICS, METRICS, Score, Scores, bleu, score, sentence_chrf

__all__ = [
    "ALL_METRICS",
    "LINE_METRICS",
    "METRICS",
    "PAIRWISE_METRICS",
    "TESTS",
    "TOKENIZERS",
    "Comparison",
    "Counts",
    "DetectionCounts",
    "EntityScores",
    "Errors",
    "LabelScores",
    "MetricChoice",
    "Score",
    "Scores",
    "TagScores",
    "are_entity_tags",
    "bleu",
    "bleu_tokenizer",
    "character_errors",
    "choose_bleu_tokenizer",
    "choose_metric",
    "compare",
    "count_detections",
    "detections",
    "entities",
    "entity_scores",
    "label_scores",
    "pairwise_scores",
    "score",
    "scores_by_name",
    "sentence_chrf",
    "tag_scores",
    "with_intervals",
    "word_errors",
]
