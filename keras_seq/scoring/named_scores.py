"""Corpus scores by metric name, in the requested order."""

from collections.abc import Sequence

from .comparison import Comparison, with_intervals
from .score import Score, score


def scores_by_name(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[str],
    *,
    confidence: bool = False,
    samples: int | None = None,
    lowercase: bool = False,
    tokenize: str | None = None,
) -> dict[str, Score | Comparison]:
    """Scores hypotheses by several metrics, with 95 % confidence intervals on request.

    Args:
        hypotheses, references, metrics, lowercase, tokenize: As in `score`.
        confidence: If True, add intervals by bootstrap resampling.
        samples: Number of resamples; 1,000 if None.

    Returns:
        A `Comparison` for each metric with `confidence`, otherwise a `Score`.

    Raises:
        TypeError, ValueError: As `score`.

    Example:

    >>> scores = scores_by_name(["a", "b"], [["a", "c"]], ["exact", "cer"])
    >>> {name: one.value for name, one in scores.items()}
    {'exact': 50.0, 'cer': 50.0}
    """
    found: dict[str, Score | Comparison] = {}
    for name in metrics:
        scores = score(
            hypotheses, references, metrics=[name], lowercase=lowercase, tokenize=tokenize
        )
        found[name] = next(iter(scores))
        if confidence:
            (found[name],) = with_intervals(
                scores,
                hypotheses,
                references,
                samples=samples,
                lowercase=lowercase,
                tokenize=tokenize,
            )
    return found
