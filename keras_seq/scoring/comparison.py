"""Significance tests between systems and confidence intervals, by sacreBLEU."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sacrebleu.significance import PairedTest

from .line_scores import SEED, line_counts, mean_and_half_width, resampled_rows
from .score import LINE_METRICS, METRICS, Score, Scores, make_metrics, score

TESTS = {"bootstrap": "bs", "randomization": "ar"}
RESAMPLES = 1000
TRIALS = 10_000


@dataclass(frozen=True)
class Comparison:
    """One metric of one system, compared with the first system.

    `mean` is the mean over resamples, and `interval` is half the width of the 95 % confidence
    interval; both are None without resampling. `p_value` is the p-value of the difference from the
    first system, None for the first system itself.
    """

    name: str
    value: float
    signature: str
    mean: float | None = None
    interval: float | None = None
    p_value: float | None = None

    @property
    def text(self) -> str:
        """The line to print, such as `BLEU = 36.76 (36.70 ± 1.02, p = 0.0120) nrefs:1|…`."""
        parts = []
        if self.mean is not None and self.interval is not None:
            parts.append(f"{self.mean:.2f} ± {self.interval:.2f}")
        if self.p_value is not None:
            parts.append(f"p = {self.p_value:.4f}")
        between = f" ({', '.join(parts)})" if parts else ""
        return f"{self.name} = {self.value:.2f}{between} {self.signature}"


def compare(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    test: str = "bootstrap",
    samples: int | None = None,
    metrics: Sequence[str] = METRICS,
    lowercase: bool = False,
    tokenize: str | None = None,
) -> dict[str, list[Comparison]]:
    """Scores systems and tests the difference of each from the first.

    Args:
        systems: The output of two or more systems by name, one string per line.
        references, metrics, lowercase, tokenize: As for `score`.
        test: `"bootstrap"`, paired bootstrap resampling (Koehn 2004), or `"randomization"`, paired
            approximate randomization (Riezler and Maxwell 2005), which resamples for the intervals
            only.
        samples: Number of resamples or trials; 1,000 or 10,000 if None, as in sacreBLEU.

    Returns:
        The metrics of each system, equal to those of the sacreBLEU command.

    Raises:
        TypeError, ValueError: As `score`; or for fewer than two systems, or an unknown test.

    Reference:
        Koehn, "Statistical Significance Tests for Machine Translation Evaluation", 2004,
        https://aclanthology.org/W04-3250; Riezler and Maxwell, "On Some Pitfalls in Automatic
        Evaluation and Significance Testing for MT", 2005, https://aclanthology.org/W05-0908
    """
    if len(systems) < 2:
        raise ValueError("a test compares systems: expected two or more")
    if test not in TESTS:
        raise ValueError(f"unknown test {test!r}, expected one of {', '.join(TESTS)}")
    sacrebleu_metrics = make_metrics(metrics, lowercase=lowercase, tokenize=tokenize)
    for lines in systems.values():
        score(lines, references, metrics=[])
    paired = PairedTest(
        [(name, list(lines)) for name, lines in systems.items()],
        sacrebleu_metrics,
        [list(lines) for lines in references],
        test_type=TESTS[test],
        n_samples=samples or 0,
        n_ar_confidence=-1 if test == "bootstrap" else RESAMPLES,
    )
    signatures, columns = paired()
    names = columns.pop("System")
    results: Any = columns
    return {
        str(system): [
            _comparison(name, results[name][place], str(signatures[name])) for name in results
        ]
        for place, system in enumerate(names)
    }


def _comparison(name: str, result: Any, signature: str) -> Comparison:
    # Python numbers, because JSON cannot store the numpy numbers of sacreBLEU.
    numbers = {
        ours: None if (value := getattr(result, theirs)) is None else float(value)
        for ours, theirs in (("mean", "mean"), ("interval", "ci"), ("p_value", "p_value"))
    }
    return Comparison(name, float(result.score), signature, **numbers)


def with_intervals(
    scores: Scores,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    samples: int | None = None,
    lowercase: bool = False,
    tokenize: str | None = None,
) -> list[Comparison]:
    """Adds 95 % confidence intervals to the result of `score` by bootstrap resampling.

    Pass the other arguments as to `score`. `samples` None is 1,000, as in sacreBLEU. Mean and
    interval are None if the error rate of a resample is infinite, because the references of the
    resample are empty.

    Example:

    >>> lines, references = ["a", "b", "c", "d"], [["a", "b", "c", "x"]]
    >>> scores = score(lines, references, metrics=["exact"])
    >>> [result] = with_intervals(scores, lines, references)
    >>> result.value, result.interval
    (75.0, 37.5)
    """
    names = [name for name, result in vars(scores).items() if result is not None]
    sacrebleu_names = [name for name in names if name not in LINE_METRICS]
    sacrebleu_metrics = make_metrics(sacrebleu_names, lowercase=lowercase, tokenize=tokenize)
    samples = samples or RESAMPLES
    results = []
    for name in names:
        if name in LINE_METRICS:
            counts = line_counts(name, hypotheses, references, lowercase)
            interval = counts.interval(samples)
            signature = f"nrefs:{len(references)}|bs:{samples}|seed:{SEED}|{counts.signature}"
            results.append(Comparison(counts.name, counts.value, signature, *interval))
            continue
        metric = sacrebleu_metrics[name]
        lines = list(hypotheses), [list(one) for one in references]
        interval = _interval(metric, *lines, samples)
        # Must follow the resampling, so that the signature contains the number of resamples.
        value = metric.corpus_score(*lines)
        signature = str(metric.get_signature())
        results.append(Comparison(value.name, float(value.score), signature, *interval))
    return results


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

    See `score` and `with_intervals` for the other arguments and the errors. Returns a `Comparison`
    for each metric if `confidence` is True, or else a `Score`.

    Example:

    >>> scores = scores_by_name(["a", "b"], [["a", "c"]], ["exact", "cer"])
    >>> {name: one.value for name, one in scores.items()}
    {'exact': 50.0, 'cer': 50.0}
    """
    options: Any = {"lowercase": lowercase, "tokenize": tokenize}
    results: dict[str, Score | Comparison] = {}
    for name in metrics:
        scores = score(hypotheses, references, metrics=[name], **options)
        (results[name],) = (
            with_intervals(scores, hypotheses, references, samples=samples, **options)
            if confidence
            else scores
        )
    return results


def _interval(
    metric: Any, hypotheses: list[str], references: list[list[str]], samples: int
) -> tuple[float, float]:
    """Returns mean and half the width of the 95 % interval of a sacreBLEU metric."""
    try:
        resampled = metric.corpus_score(hypotheses, references, n_bootstrap=samples)
    except TypeError:
        # sacreBLEU 2.6 raises TypeError if the score of a resample is 0.
        scores = []
        for rows in resampled_rows(len(hypotheses), samples):
            chosen = [[lines[row] for row in rows] for lines in (hypotheses, *references)]
            scores.append(float(metric.corpus_score(chosen[0], chosen[1:]).score))
        return mean_and_half_width(np.array(scores))
    # sacreBLEU has no public attributes for the mean and the interval.
    return float(resampled._mean), float(resampled._ci)
