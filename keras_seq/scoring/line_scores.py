"""Metrics that are sums over lines: exact match, character and word error rate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .error_rate import Unit, line_errors

# The default of SACREBLEU_SEED, the seed with which sacreBLEU resamples.
SEED = 12345


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

    def interval(self, samples: int) -> tuple[float | None, float | None]:
        """Computes the mean over resamples and half the width of the 95 % interval.

        Both are None if the references of some resample are empty and its error rate is infinite.
        """
        values = np.empty(samples)
        for number, chosen in enumerate(resampled_rows(len(self.counts), samples)):
            values[number] = _ratio(int(self.counts[chosen].sum()), int(self.sizes[chosen].sum()))
        return mean_and_half_width(values) if np.isfinite(values).all() else (None, None)


def resampled_rows(lines: int, samples: int) -> Iterator[np.ndarray]:
    """Yields the line indices of each resample. A resample has as many lines as the corpus."""
    generator = np.random.default_rng(SEED)
    for _ in range(samples):
        yield generator.integers(lines, size=lines)


def mean_and_half_width(values: np.ndarray) -> tuple[float, float]:
    """Returns the mean and half the width of the 95 % interval, computed as in sacreBLEU."""
    values, outside = np.sort(values), len(values) // 40
    return float(values.mean()), float(0.5 * (values[-outside - 1] - values[outside]))


def line_counts(
    name: str,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    lowercase: bool = False,
) -> LineCounts:
    """Computes the `LineCounts` of `"exact"`, `"cer"` or `"wer"`; see `score` for the arguments.

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
        details = f"{int(equal.sum()):,} of {len(equal):,} lines"
        return LineCounts("EXACT", equal, np.ones_like(equal), f"{case}|unit:line", details)
    unit: Unit = "word" if name == "wer" else "character"
    errors = line_errors(hypotheses, references[0], unit)
    substitutions, insertions, deletions, length = errors.sum(axis=1)
    return LineCounts(
        name.upper(),
        errors[:3].sum(axis=0),
        errors[3],
        f"{case}|unit:{unit}|edits:levenshtein",
        f"{substitutions} substitutions, {insertions} insertions, {deletions} deletions in "
        f"{length} {unit}s",
    )


def _ratio(count: int, size: int) -> float:
    if not size:
        return float("inf") if count else 0.0
    return 100 * count / size
