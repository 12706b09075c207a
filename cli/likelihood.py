"""`keras-seq likelihood`: how likely a model finds given translations."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly

if TYPE_CHECKING:
    from keras_seq.likelihood import Likelihood, LikelihoodScorer

# Pairs scored at a time, so that a large file takes little memory.
_PAIRS = 2048


def likelihood(
    run: Annotated[str, typer.Argument(help="Directory that train made.")],
    source: Annotated[str, typer.Argument(help="File of sources; - for stdin.")],
    target: Annotated[str, typer.Argument(help="File of their translations; - for stdin.")],
    each: Annotated[
        Literal["line", "token", "corpus"],
        typer.Option(
            help="What has a line of the output: a translation (its log-probability), a token "
            "(number<TAB>token<TAB>log-probability), or all together."
        ),
    ] = "line",
    which: Annotated[
        Literal["best", "latest"], typer.Option(help="The checkpoint to score with.")
    ] = "best",
) -> None:
    """Print log-probabilities of given translations, by forced decoding; and the perplexity.

    Logarithms are natural; the end of a sentence is a token, too.
    """
    from keras_seq.run import Run
    from keras_seq.text import InputError, check_readable, read_pairs

    pairs = read_pairs(source, target, notice=notice)
    for name in (source, target):
        check_readable(name)
    Run.open(run, notice=notice).require_weights()
    heavy = import_quietly("keras_seq.likelihood")
    scorer = heavy.LikelihoodScorer.load(run, which=which, notice=notice)
    totals = {"lines": 0, "tokens": 0, "log_probability": 0.0}

    def lines() -> Iterator[str]:
        while chunk := list(itertools.islice(pairs, _PAIRS)):
            for found in scorer(*zip(*chunk, strict=True)):
                totals["lines"] += 1
                totals["tokens"] += len(found.tokens)
                totals["log_probability"] += found.total
                if each == "line":
                    yield f"{found.total:.4f}"
                elif each == "token":
                    yield from _token_lines(int(totals["lines"]), found, scorer)

    emit(lines())
    if not totals["lines"]:
        raise InputError(f"{source}: empty, there is nothing to score")
    perplexity = heavy.perplexity_of(totals["log_probability"], totals["tokens"])
    if each == "corpus":
        emit([json.dumps(totals | {"perplexity": perplexity})])
    else:
        notice(
            f"perplexity {perplexity:.4f} of {totals['tokens']:,} tokens in "
            f"{totals['lines']:,} lines"
        )


def _token_lines(number: int, found: Likelihood, scorer: LikelihoodScorer) -> Iterator[str]:
    pieces = scorer.target_tokenizer.pieces
    for token, value in zip(found.tokens, found.log_probabilities, strict=True):
        yield f"{number}\t{pieces[token].text}\t{value:.4f}"
