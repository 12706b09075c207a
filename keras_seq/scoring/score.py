"""Corpus scores by sacreBLEU, to every digit, with their signatures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics import BLEU, CHRF, TER

METRICS = ("bleu", "chrf", "ter")
# Of sacreBLEU's tokenizers those that download nothing.
TOKENIZERS = ("13a", "char", "intl", "ja-mecab", "ko-mecab", "none", "zh")


@dataclass(frozen=True)
class Score:
    """One corpus score.

    Attributes:
        name: As sacreBLEU writes it: `BLEU`, `chrF2`, `TER`.
        value: The score, usually 0 to 100; for TER, lower is better.
        signature: What somebody else needs to get the same number.
        details: What the metric adds, as BLEU its precisions and brevity
            penalty; empty where it adds nothing.
    """

    name: str
    value: float
    signature: str
    details: str = ""

    @property
    def text(self) -> str:
        """The line to print, such as `BLEU = 36.76 nrefs:1|case:mixed|…`."""
        return f"{self.name} = {self.value:.2f} {self.signature}"


@dataclass(frozen=True)
class Scores:
    """The scores of one set of hypotheses; iterating gives those asked for.

    Attributes:
        bleu, chrf, ter: Each a `Score`, or None if it was not asked for.
    """

    bleu: Score | None = None
    chrf: Score | None = None
    ter: Score | None = None

    def __iter__(self) -> Iterator[Score]:
        return (found for found in (self.bleu, self.chrf, self.ter) if found is not None)


def score(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    metrics: Sequence[str] = METRICS,
    lowercase: bool = False,
    tokenize: str | None = None,
) -> Scores:
    """Score hypotheses against one or more sets of references.

    The values are sacreBLEU's own, with its defaults (so TER ignores case).

    Args:
        hypotheses: The output, a string for each line.
        references: A list of sets, each with one string for each hypothesis:
            `[lines]` for one reference file.
        metrics: Which of `"bleu"`, `"chrf"` and `"ter"`.
        lowercase: Whether BLEU and chrF ignore case.
        tokenize: The tokenizer of BLEU, one of `TOKENIZERS`; None is
            sacreBLEU's choice (`"13a"`).

    Returns:
        The scores, with a signature each.

    Raises:
        TypeError: If `hypotheses` or a set of references is a string.
        ValueError: If a set of references is empty or has another number of
            lines than the hypotheses (with both counts); if a metric or
            tokenizer is unknown.

    Example:

    >>> found = score(["a dog runs"], [["A dog runs"]], metrics=["chrf"], lowercase=True)
    >>> found.chrf.value
    100.0

    Reference:
        Post, "A Call for Clarity in Reporting BLEU Scores", WMT 2018,
        https://aclanthology.org/W18-6319/
    """
    _check(hypotheses, references)
    made = make_metrics(metrics, lowercase=lowercase, tokenize=tokenize)
    return Scores(**{name: _scored(made[name], hypotheses, references) for name in made})


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    lowercase: bool = False,
    tokenize: str | None = None,
) -> Score:
    """Score hypotheses by BLEU alone, and without advice on their punctuation.

    Args:
        hypotheses, references, lowercase, tokenize: As for `score`.

    Returns:
        The BLEU score with its signature, the same as `score` gives.

    Raises:
        TypeError, ValueError: As `score`.

    Example:

    >>> bleu(["a dog runs fast"], [["a dog runs fast"]]).text[:14]
    'BLEU = 100.00 '
    """
    _check(hypotheses, references)
    # force only keeps sacreBLEU from logging that the text looks tokenized.
    metric = BLEU(lowercase=lowercase, tokenize=_tokenizer(tokenize), force=True)
    return _scored(metric, hypotheses, references)


def make_metrics(
    names: Sequence[str], *, lowercase: bool = False, tokenize: str | None = None
) -> dict[str, Any]:
    """sacreBLEU's metrics by name.

    Args:
        names: Which of `METRICS`.
        lowercase, tokenize: As for `score`.

    Raises:
        ValueError: If a metric or tokenizer is unknown.
    """
    if unknown := [name for name in names if name not in METRICS]:
        raise ValueError(f"unknown metric {unknown[0]!r}, expected one of {', '.join(METRICS)}")
    makers = {
        "bleu": lambda: BLEU(lowercase=lowercase, tokenize=_tokenizer(tokenize)),
        "chrf": lambda: CHRF(lowercase=lowercase),
        "ter": TER,
    }
    return {name: makers[name]() for name in dict.fromkeys(names)}


def _scored(metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    found = metric.corpus_score(list(hypotheses), [list(lines) for lines in references])
    details = found.format(width=2).partition(" = ")[2].partition(" ")[2]
    return Score(found.name, found.score, str(metric.get_signature()), details)


def _tokenizer(name: str | None) -> str | None:
    if name is not None and name not in TOKENIZERS:
        raise ValueError(f"unknown tokenizer {name!r}, expected one of {', '.join(TOKENIZERS)}")
    return name


def _check(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if isinstance(hypotheses, str):
        raise TypeError("hypotheses must be a list of strings, not one string")
    if len(references) == 0:
        raise ValueError("no references: expected at least one set of lines")
    for number, lines in enumerate(references, 1):
        if isinstance(lines, str):
            raise TypeError("references must be a list of sets of lines: wrap one set as [lines]")
        if len(lines) == 0:
            raise ValueError(f"reference {number} is empty, there are {len(hypotheses)} hypotheses")
        if len(lines) != len(hypotheses):
            raise ValueError(
                f"{len(hypotheses)} hypotheses but {len(lines)} lines in reference {number}: "
                "line N of one must go with line N of the other"
            )
