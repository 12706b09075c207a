"""`keras-seq likelihood`: prints log-probabilities of translations or texts."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.shared_options import Ensemble, To, Which

if TYPE_CHECKING:
    from keras_seq.inference.likelihood import Likelihood, LikelihoodScorer
    from keras_seq.run import Run

# Pairs per call of the model, to limit the memory for a large file.
_PAIRS = 2048


def likelihood(
    run: Annotated[str, typer.Argument(help="Run directory.")],
    source: Annotated[
        str, typer.Argument(help="File of sources, or of text for a language model; - for stdin.")
    ],
    target: Annotated[
        str | None, typer.Argument(help="File of targets, parallel to the sources; - for stdin.")
    ] = None,
    each: Annotated[
        Literal["line", "token", "corpus"],
        typer.Option(
            help="Unit of the output. line: log-probability<TAB>number of tokens; token: line "
            "number<TAB>token<TAB>log-probability; corpus: totals as JSON."
        ),
    ] = "line",
    to: To = None,
    which: Which = "best",
    ensemble: Ensemble = None,
) -> None:
    """Print log-probabilities and perplexity of translations or texts, by forced decoding.

    Logarithms are natural. The end of a sentence counts as a token. Blank pairs have no tokens.
    A model trained with data.packed scores each line given the lines before it.
    """
    from keras_seq.run import Run
    from keras_seq.text import with_languages

    opened = Run.open(run, notice=notice)
    pairs = _read(opened, source, target)
    with_languages((), opened.languages, to)
    opened.require_weights(which)
    scorer = import_quietly("keras_seq.inference.likelihood").LikelihoodScorer.load(
        run, which=which, ensemble=ensemble or (), notice=notice
    )
    totals = _Totals()
    name = source if target is None else target
    emit(_scores(scorer, _likelihoods(opened, scorer, pairs, name, to), each, totals))
    totals.report(source, as_json=each == "corpus")


def _read(run: Run, source: str, target: str | None) -> Iterator[tuple[str, str]]:
    """Checks the files and returns pairs of lines; a language model has empty sources."""
    from keras_seq.text import check_readable, check_same_length, read_lines, read_pairs

    if run.settings.task == "translate":
        if target is None:
            raise typer.BadParameter("expected a file of targets", param_hint="'target'")
        pairs = read_pairs(source, target, notice=notice)
        check_same_length(source, target)
        return pairs
    run.require_task("language-model")
    if target is not None:
        raise typer.BadParameter("a language model takes one file", param_hint="'target'")
    check_readable(source)
    return (("", line) for line in read_lines(source, notice=notice))


@dataclass
class _Totals:
    """Sums over all lines of a corpus.

    Attributes:
        lines: Number of lines.
        tokens: Number of target tokens.
        log_probability: Sum of the log-probabilities.
        truncated: Number of truncated sources.
    """

    lines: int = 0
    tokens: int = 0
    log_probability: float = 0.0
    truncated: int = 0

    def add(self, likelihood: Likelihood) -> None:
        """Adds the likelihood of one line to the sums."""
        self.lines += 1
        self.tokens += len(likelihood.tokens)
        self.log_probability += likelihood.total
        self.truncated += likelihood.source_truncated

    def report(self, source: str, *, as_json: bool) -> None:
        """Prints the perplexity to stderr, or all totals as JSON to stdout."""
        from keras_seq.inference.likelihood import perplexity_of
        from keras_seq.text import InputError

        if self.truncated:
            notice(f"{self.truncated:,} sources truncated to data.max_source_length tokens")
        if not self.tokens:
            raise InputError(f"{source}: no text, expected at least one token")
        perplexity = perplexity_of(self.log_probability, self.tokens)
        if not as_json:
            notice(f"perplexity {perplexity:.4f} of {self.tokens:,} tokens in {self.lines:,} lines")
            return
        result = {
            "lines": self.lines,
            "tokens": self.tokens,
            "log_probability": self.log_probability,
            # JSON cannot represent infinity.
            "perplexity": perplexity if math.isfinite(perplexity) else None,
            "truncated_sources": self.truncated,
        }
        emit([json.dumps(result)])


def _likelihoods(
    run: Run,
    scorer: LikelihoodScorer,
    pairs: Iterator[tuple[str, str]],
    target: str,
    to: str | None,
) -> Iterator[Likelihood]:
    """Yields the likelihood of each pair, which is read from the file `target`."""
    from keras_seq.inference.likelihood import LongTargetError
    from keras_seq.inference.output_formats import line_range
    from keras_seq.inference.stream_likelihood import text_likelihoods
    from keras_seq.text import InputError, feature_notice

    if run.settings.data.packed:
        # All at once, because a line depends on those before it.
        yield from text_likelihoods(scorer, [line for _, line in pairs], run.settings)
        return
    done = 0
    while chunk := list(itertools.islice(pairs, _PAIRS)):
        if message := feature_notice([source for source, _ in chunk], scorer.source_tokenizer):
            notice(f"{line_range(done + 1, len(chunk))}: {message}")
        try:
            yield from scorer(*zip(*chunk, strict=True), to=to)
        except LongTargetError as error:
            name = "standard input" if target == "-" else target
            raise InputError(f"{name}:{done + error.index + 1}: {error.what}") from None
        done += len(chunk)


def _scores(
    scorer: LikelihoodScorer, likelihoods: Iterator[Likelihood], each: str, totals: _Totals
) -> Iterator[str]:
    """Yields the output lines of all pairs, and adds the likelihoods to `totals`."""
    for likelihood in likelihoods:
        totals.add(likelihood)
        if each == "line":
            yield f"{likelihood.total:.6f}\t{len(likelihood.tokens)}"
        elif each == "token":
            yield from _token_lines(totals.lines, likelihood, scorer)


def _token_lines(number: int, likelihood: Likelihood, scorer: LikelihoodScorer) -> Iterator[str]:
    pieces = scorer.target_tokenizer.pieces
    for token, value in zip(likelihood.tokens, likelihood.log_probabilities, strict=True):
        yield f"{number}\t{pieces[token].text}\t{value:.6f}"
