"""`keras-seq likelihood`: how likely a model finds given translations."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from keras_seq_cli.checkpoint_option import Which
from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly

if TYPE_CHECKING:
    from keras_seq.inference.likelihood import Likelihood, LikelihoodScorer

# Pairs scored at a time, so that a large file takes little memory.
_PAIRS = 2048


def likelihood(
    run: Annotated[str, typer.Argument(help="Directory that train made.")],
    source: Annotated[
        str,
        typer.Argument(help="File of sources, or of a language model's text; - for stdin."),
    ],
    target: Annotated[
        str | None, typer.Argument(help="File of their translations; - for stdin.")
    ] = None,
    each: Annotated[
        Literal["line", "token", "corpus"],
        typer.Option(
            help="What has a line of the output: a translation (log-probability<TAB>tokens), a "
            "token (line number<TAB>token<TAB>log-probability), or all together (JSON)."
        ),
    ] = "line",
    which: Which = "best",
    ensemble: Annotated[
        list[str] | None,
        typer.Option(
            help="Another run, with the same vocabulary, that scores together with this one; "
            "may be given again."
        ),
    ] = None,
) -> None:
    """Print how likely given translations or texts are, by forced decoding, and the perplexity.

    Logarithms are natural; the end of a sentence is a token, too. Two blank lines have none.
    """
    from keras_seq.run import Run
    from keras_seq.text import (
        InputError,
        check_readable,
        check_same_length,
        read_lines,
        read_pairs,
    )

    opened = Run.open(run, notice=notice)
    if opened.settings.task == "translate":
        if target is None:
            raise typer.BadParameter("needed beside the sources", param_hint="'target'")
        pairs = read_pairs(source, target, notice=notice)
        check_same_length(source, target)
    else:
        opened.require_task("language-model")
        if target is not None:
            raise typer.BadParameter("a language model takes one file", param_hint="'target'")
        check_readable(source)
        pairs = (("", line) for line in read_lines(source, notice=notice))
    opened.require_weights(which)
    heavy = import_quietly("keras_seq.inference.likelihood")
    scorer = heavy.LikelihoodScorer.load(run, which=which, ensemble=ensemble or (), notice=notice)
    lines, tokens, total, cut = 0, 0, 0.0, 0

    def written() -> Iterator[str]:
        nonlocal lines, tokens, total, cut
        while chunk := list(itertools.islice(pairs, _PAIRS)):
            try:
                every = scorer(*zip(*chunk, strict=True))
            except heavy.LongTargetError as error:
                scored = source if target is None else target
                name = "standard input" if scored == "-" else scored
                raise InputError(f"{name}:{lines + error.index + 1}: {error.what}") from None
            for found in every:
                lines += 1
                tokens += len(found.tokens)
                total += found.total
                cut += found.source_cut
                if each == "line":
                    yield f"{found.total:.6f}\t{len(found.tokens)}"
                elif each == "token":
                    yield from _token_lines(lines, found, scorer)

    emit(written())
    if cut:
        notice(f"{cut:,} sources were cut at the longest input (data.max_source_length)")
    if not tokens:
        raise InputError(f"{source}: no text, there is nothing to score")
    perplexity = heavy.perplexity_of(total, tokens)
    if each == "corpus":
        # JSON has no infinity.
        known = perplexity if math.isfinite(perplexity) else None
        emit(
            [
                json.dumps(
                    {
                        "lines": lines,
                        "tokens": tokens,
                        "log_probability": total,
                        "perplexity": known,
                        "cut_sources": cut,
                    }
                )
            ]
        )
    else:
        notice(f"perplexity {perplexity:.4f} of {tokens:,} tokens in {lines:,} lines")


def _token_lines(number: int, found: Likelihood, scorer: LikelihoodScorer) -> Iterator[str]:
    pieces = scorer.target_tokenizer.pieces
    for token, value in zip(found.tokens, found.log_probabilities, strict=True):
        yield f"{number}\t{pieces[token].text}\t{value:.6f}"
