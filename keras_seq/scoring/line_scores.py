"""Metrics that are sums over lines: exact match, character and word error rate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .error_rate import line_character_errors, line_word_errors

# The resamples of sacreBLEU have the same seed unless SACREBLEU_SEED is set.
_SEED = 12345


@dataclass(frozen=True)
class LineCounts:
    """A metric that is 100 times the ratio of two sums over lines.

        value = 100 sum over lines of counts / sum over lines of sizes

    Attributes:
        name: `EXACT`, `CER` or `WER`.
        counts: Int64 `(lines,)`, equal lines or errors.
        sizes: Int64 `(lines,)`, 1, or the length of the reference.
        signature: The fields of the signature after `nrefs`.
        details: Text after the value of the metric.
    """

    name: str
    counts: np.ndarray
    sizes: np.ndarray
    signature: str
    details: str

    @property
    def value(self) -> float:
        """The metric of the corpus."""
        return _ratio(int(self.counts.sum()), int(self.sizes.sum()))

    def interval(self, samples: int) -> tuple[float | None, float | None, str]:
        """Computes the mean over resamples and half the width of the 95 % interval.

        As in sacreBLEU, the half width is half the distance between the 2.5 % and the 97.5 %
        quantiles of the scores of `samples` resamples, each as long as the corpus.

        Args:
            samples: Positive integer, number of resamples.

        Returns:
            Mean, half width and the fields of the signature. The numbers are None if the
            references of some resample are empty and its error rate is infinite.
        """
        values = np.empty(samples)
        for number, chosen in enumerate(resampled_rows(len(self.counts), samples)):
            values[number] = _ratio(int(self.counts[chosen].sum()), int(self.sizes[chosen].sum()))
        signature = f"bs:{samples}|seed:{_SEED}|{self.signature}"
        if not np.isfinite(values).all():
            return None, None, signature
        values.sort()
        outside = samples // 40
        half = 0.5 * (values[samples - outside - 1] - values[outside])
        return float(values.mean()), float(half), signature


def resampled_rows(lines: int, samples: int) -> Iterator[np.ndarray]:
    """Yields the line indices of each resample."""
    generator = np.random.default_rng(_SEED)
    for _ in range(samples):
        yield generator.integers(lines, size=lines)


def line_counts(
    name: str,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    lowercase: bool = False,
) -> LineCounts:
    """Counts each line for `"exact"`, `"cer"` or `"wer"`.

    Args:
        name: The metric.
        hypotheses, references, lowercase: As in `score`.

    Raises ValueError if an error rate has several sets of references.
    """
    if name != "exact" and len(references) > 1:
        raise ValueError(f"{name!r} takes one set of references, received {len(references)}")
    if lowercase:
        hypotheses = [line.lower() for line in hypotheses]
        references = [[line.lower() for line in lines] for lines in references]
    case = f"case:{'lc' if lowercase else 'mixed'}"
    if name == "exact":
        equal = np.zeros(len(hypotheses), np.int64)
        for lines in references:
            equal |= [ours == theirs for ours, theirs in zip(hypotheses, lines, strict=True)]
        return LineCounts(
            "EXACT",
            equal,
            np.ones_like(equal),
            f"{case}|unit:line",
            f"{int(equal.sum()):,} of {len(equal):,} lines",
        )
    count, unit = (
        (line_word_errors, "word") if name == "wer" else (line_character_errors, "character")
    )
    errors = count(hypotheses, references[0])
    total = errors.total
    return LineCounts(
        name.upper(),
        errors.counts,
        errors.lengths,
        f"{case}|unit:{unit}|edits:levenshtein",
        f"{total.substitutions} substitutions, {total.insertions} insertions, "
        f"{total.deletions} deletions in {total.length} {unit}s",
    )


def _ratio(count: int, size: int) -> float:
    if not size:
        return float("inf") if count else 0.0
    return 100 * count / size
