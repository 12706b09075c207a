"""Whether one system is better than another, or by chance, by sacreBLEU's own tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.significance import PairedTest

from .line_scores import line_counts, resampled_rows
from .score import LINE_METRICS, METRICS, Scores, make_metrics, score

TESTS = {"bootstrap": "bs", "randomization": "ar"}
RESAMPLES = 1000
TRIALS = 10_000


@dataclass(frozen=True)
class Comparison:
    """One metric of one system beside the first system.

    Attributes:
        name: As sacreBLEU writes it: `BLEU`, `chrF2`, `TER`.
        value: The score.
        signature: What somebody else needs to get the same numbers.
        mean: The mean over resamples; None where none were made.
        interval: Half the width of the 95 % interval around it; or None.
        p_value: How likely so large a difference from the first system is if there
            is none; None for the first itself.
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
        said = []
        if self.mean is not None and self.interval is not None:
            said.append(f"{self.mean:.2f} ± {self.interval:.2f}")
        if self.p_value is not None:
            said.append(f"p = {self.p_value:.4f}")
        between = f" ({', '.join(said)})" if said else ""
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
    """Scores systems and tests each against the first.

    Args:
        systems: Their output by name, a string for each line; two or more.
        references: As for `score`.
        test: `"bootstrap"`, paired bootstrap resampling (Koehn 2004), or
            `"randomization"`, paired approximate randomisation (Riezler and
            Maxwell 2005), which resamples for the intervals only.
        samples: How many resamples, or trials; sacreBLEU's 1,000 and 10,000 if None.
        metrics, lowercase, tokenize: As for `score`.

    Returns:
        For each system its metrics, the same as sacreBLEU's command gives.

    Raises:
        TypeError, ValueError: As `score`; fewer than two systems, an unknown test.

    Reference:
        Koehn, "Statistical Significance Tests for Machine Translation
        Evaluation", 2004, https://aclanthology.org/W04-3250; Riezler and
        Maxwell, "On Some Pitfalls in Automatic Evaluation and Significance
        Testing for MT", 2005, https://aclanthology.org/W05-0908
    """
    if len(systems) < 2:
        raise ValueError("a test compares systems: expected two or more")
    if test not in TESTS:
        raise ValueError(f"unknown test {test!r}, expected one of {', '.join(TESTS)}")
    made = make_metrics(metrics, lowercase=lowercase, tokenize=tokenize)
    for lines in systems.values():
        score(lines, references, metrics=[])
    paired = PairedTest(
        [(name, list(lines)) for name, lines in systems.items()],
        made,
        [list(lines) for lines in references],
        test_type=TESTS[test],
        n_samples=samples or 0,
        n_ar_confidence=-1 if test == "bootstrap" else RESAMPLES,
    )
    signatures, found = paired()
    names = found.pop("System")
    results: Any = found
    return {
        str(system): [
            _comparison(name, results[name][place], str(signatures[name])) for name in results
        ]
        for place, system in enumerate(names)
    }


def _comparison(name: str, result: Any, signature: str) -> Comparison:
    # sacreBLEU's are numbers of numpy, which JSON does not know.
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
    """Scores of one system with 95 % intervals by bootstrap resampling.

    Args:
        scores: What `score` gave.
        hypotheses, references, lowercase, tokenize: What it was given.
        samples: How many resamples; sacreBLEU's 1,000 if None.

    Returns:
        The metrics in the order of `scores`. Mean and interval are None where the error rate of
        a resample is infinite, because its references are empty.

    Example:

    >>> lines, references = ["a", "b", "c", "d"], [["a", "b", "c", "x"]]
    >>> scores = score(lines, references, metrics=["exact"])
    >>> [found] = with_intervals(scores, lines, references)
    >>> found.value, found.interval
    (75.0, 37.5)
    """
    asked = [name for name, found in vars(scores).items() if found is not None]
    theirs = [name for name in asked if name not in LINE_METRICS]
    made = make_metrics(theirs, lowercase=lowercase, tokenize=tokenize)
    samples = samples or RESAMPLES
    found = []
    for name in asked:
        if name in LINE_METRICS:
            counts = line_counts(name, hypotheses, references, lowercase)
            mean, interval, fields = counts.interval(samples)
            signature = f"nrefs:{len(references)}|{fields}"
            found.append(Comparison(counts.name, counts.value, signature, mean, interval))
            continue
        metric = made[name]
        lines = list(hypotheses), [list(one) for one in references]
        mean, interval = _interval(metric, *lines, samples)
        # After it, because the signature names the resamples.
        value = metric.corpus_score(*lines)
        signature = str(metric.get_signature())
        found.append(Comparison(value.name, float(value.score), signature, mean, interval))
    return found


def _interval(
    metric: Any, hypotheses: list[str], references: list[list[str]], samples: int
) -> tuple[float, float]:
    """Mean and half the width of the 95 % interval of a metric of sacreBLEU, by its resamples."""
    try:
        resampled = metric.corpus_score(hypotheses, references, n_bootstrap=samples)
    except TypeError:
        # Where the score of a resample is 0, sacreBLEU 2.6 takes the mean of numbers of two types,
        # which Python refuses.
        return _own_interval(metric, hypotheses, references, samples)
    # sacreBLEU keeps them under names of its own.
    return float(resampled._mean), float(resampled._ci)


def _own_interval(
    metric: Any, hypotheses: list[str], references: list[list[str]], samples: int
) -> tuple[float, float]:
    scores = sorted(
        float(
            metric.corpus_score(
                [hypotheses[row] for row in rows],
                [[lines[row] for row in rows] for lines in references],
            ).score
        )
        for rows in resampled_rows(len(hypotheses), samples)
    )
    outside = samples // 40
    return sum(scores) / samples, (scores[samples - outside - 1] - scores[outside]) / 2
