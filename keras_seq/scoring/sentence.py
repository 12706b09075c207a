"""How good single lines are, for sorting them."""

from collections.abc import Sequence

from sacrebleu.metrics import CHRF


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """chrF of each line alone, 0 to 100.

    Of one line chrF says more than BLEU, which is 0 where no four words in a row agree.

    Args:
        hypotheses: The output, a string for each line.
        references: As many strings.

    Returns:
        As many scores, those of sacreBLEU with its defaults.

    Raises:
        ValueError: If there are not as many of both.

    Example:

    >>> sentence_chrf(["a dog runs", "x"], ["a dog runs", "a cat"])
    [100.0, 0.0]

    Reference:
        Popović, "chrF: character n-gram F-score for automatic MT evaluation", WMT 2015,
        https://aclanthology.org/W15-3049/
    """
    if len(hypotheses) != len(references):
        raise ValueError(f"received {len(hypotheses)} hypotheses and {len(references)} references")
    metric = CHRF()
    return [
        metric.sentence_score(hypothesis, [reference]).score
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
