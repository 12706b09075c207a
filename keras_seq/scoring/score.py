"""Corpus scores: the metrics of sacreBLEU, exact match and error rates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics import BLEU, CHRF, TER

from .bleu_tokenizers import bleu_tokenizer
from .line_scores import line_counts

# Metrics of sacreBLEU, computed by default.
METRICS = ("bleu", "chrf", "ter")
# Metrics that are sums over lines, computed only on request.
LINE_METRICS = ("exact", "cer", "wer")
ALL_METRICS = (*LINE_METRICS, "chrf", "bleu", "ter")


@dataclass(frozen=True)
class Score:
    """One corpus score.

    Attributes:
        name: The name in sacreBLEU: `BLEU`, `chrF2`, `TER`; or `EXACT`, `CER`, `WER`.
        value: The score, usually 0 to 100; for TER, WER and CER, lower is better.
        signature: The parameters that reproduce the score.
        details: Further numbers, such as the precisions and brevity penalty of BLEU; may be empty.
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
    """Scores of a set of hypotheses. Iterates over the requested scores."""

    bleu: Score | None = None
    chrf: Score | None = None
    ter: Score | None = None
    wer: Score | None = None
    cer: Score | None = None
    exact: Score | None = None

    def __iter__(self) -> Iterator[Score]:
        return (value for value in vars(self).values() if value is not None)


def score(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    metrics: Sequence[str] = METRICS,
    lowercase: bool = False,
    tokenize: str | None = None,
) -> Scores:
    """Scores hypotheses against one or more sets of references.

    sacreBLEU computes BLEU, chrF and TER with its defaults (so TER ignores case). `exact` is the
    percentage of lines that equal one of their references in every character. Word and character
    error rate are in percent; see `word_errors` and `character_errors`. If tokens are separated by
    spaces, such as phones, the word error rate is their token error rate.

    Args:
        hypotheses: The output lines.
        references: A list of sets, each with one line for each hypothesis: `[lines]` for one
            reference file.
        metrics: A selection of `ALL_METRICS`: `"exact"`, `"cer"`, `"wer"`, `"chrf"`, `"bleu"` and
            `"ter"`; the error rates only with one set of references.
        lowercase: If True, all metrics ignore case; TER always does.
        tokenize: The tokenizer of BLEU, one of `TOKENIZERS`; None is the default of sacreBLEU,
            `"13a"`.

    Returns:
        The scores, with a signature each.

    Raises:
        TypeError: If `hypotheses` or a set of references is a string.
        ValueError: If a set of references is empty or differs in length from the hypotheses; if a
            metric or tokenizer is unknown; if a package or file of the tokenizer is missing; if an
            error rate is requested with several sets of references.

    Example:

    >>> scores = score(["a dog runs"], [["A dog runs"]], metrics=["chrf"], lowercase=True)
    >>> scores.chrf.value
    100.0
    >>> score(["a dog", "runs"], [["a dog", "ran"]], metrics=["exact"]).exact.text
    'EXACT = 50.00 nrefs:1|case:mixed|unit:line'

    Reference:
        Post, "A Call for Clarity in Reporting BLEU Scores", WMT 2018,
        https://aclanthology.org/W18-6319/
    """
    _check(hypotheses, references)
    if unknown := [name for name in metrics if name not in ALL_METRICS]:
        raise ValueError(f"unknown metric {unknown[0]!r}, expected one of {', '.join(ALL_METRICS)}")
    translation = [name for name in metrics if name in METRICS]
    sacrebleu_metrics = make_metrics(translation, lowercase=lowercase, tokenize=tokenize)
    scores = {
        name: _scored(metric, hypotheses, references) for name, metric in sacrebleu_metrics.items()
    }
    for name in metrics:
        if name in LINE_METRICS:
            counts = line_counts(name, hypotheses, references, lowercase)
            signature = f"nrefs:{len(references)}|{counts.signature}"
            scores[name] = Score(counts.name, counts.value, signature, counts.details)
    return Scores(**scores)


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    lowercase: bool = False,
    tokenize: str | None = None,
) -> Score:
    """Scores hypotheses by BLEU, without the warning of sacreBLEU about tokenized text.

    See `score` for the arguments and errors.

    Example:

    >>> bleu(["a dog runs fast"], [["a dog runs fast"]]).text[:14]
    'BLEU = 100.00 '
    """
    _check(hypotheses, references)
    # `force` only disables the warning of sacreBLEU that the text looks tokenized.
    metric = BLEU(lowercase=lowercase, tokenize=bleu_tokenizer(tokenize), force=True)
    return _scored(metric, hypotheses, references)


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """Computes chrF of each line, 0 to 100, with the defaults of sacreBLEU.

    chrF suits single lines better than BLEU, which is 0 if no sequence of four words matches.
    Raises ValueError if the numbers of lines differ.

    Example:

    >>> sentence_chrf(["a dog runs", "x"], ["a dog runs", "a cat"])
    [100.0, 0.0]
    """
    if len(hypotheses) != len(references):
        raise ValueError(f"received {len(hypotheses)} hypotheses and {len(references)} references")
    metric = CHRF()
    return [
        metric.sentence_score(hypothesis, [reference]).score
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]


def make_metrics(
    names: Sequence[str], *, lowercase: bool = False, tokenize: str | None = None
) -> dict[str, Any]:
    """Creates sacreBLEU metrics by name; raises ValueError if a name is not in `METRICS`."""
    if others := [name for name in names if name in LINE_METRICS]:
        raise ValueError(
            f"no paired test of {others[0]!r}: sacreBLEU has one for {', '.join(METRICS)}"
        )
    if unknown := [name for name in names if name not in METRICS]:
        raise ValueError(f"unknown metric {unknown[0]!r}, expected one of {', '.join(METRICS)}")
    makers = {
        "bleu": lambda: BLEU(lowercase=lowercase, tokenize=bleu_tokenizer(tokenize)),
        "chrf": lambda: CHRF(lowercase=lowercase),
        "ter": TER,
    }
    return {name: makers[name]() for name in dict.fromkeys(names)}


def _scored(metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Score:
    result = metric.corpus_score(list(hypotheses), [list(lines) for lines in references])
    details = result.format(width=2).partition(" = ")[2].partition(" ")[2]
    return Score(result.name, result.score, str(metric.get_signature()), details)


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
