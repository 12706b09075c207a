"""Scores of single lines."""

from collections.abc import Sequence

from sacrebleu.metrics import CHRF


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """Computes chrF of each line, 0 to 100.

    chrF suits single lines better than BLEU, which is 0 if no sequence of four words matches.

    Args:
        hypotheses: The output lines.
        references: The reference lines.

    Returns:
        The scores of sacreBLEU with its defaults.

    Raises:
        ValueError: If the numbers of lines differ.

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
