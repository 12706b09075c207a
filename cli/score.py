"""`keras-seq score`: hypotheses and references to scores."""

from __future__ import annotations

from typing import Annotated

import typer
from keras_seq_cli.output import emit, notice


def score(
    hypothesis: Annotated[str, typer.Argument(help="File of translations; - for stdin.")],
    reference: Annotated[
        list[str],
        typer.Option("--reference", "-r", help="File of references; may be given again."),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", "-m", help="bleu, chrf or ter; may be given again. All."),
    ] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case.")] = False,
    tokenize: Annotated[
        str | None, typer.Option(help="sacreBLEU's tokenizer for BLEU; 13a by default.")
    ] = None,
) -> None:
    """Print BLEU, chrF and TER, each with its sacreBLEU signature."""
    from keras_seq.scoring import METRICS
    from keras_seq.scoring import score as corpus_score
    from keras_seq.text import InputError, check_readable, read_lines

    names = [hypothesis, *reference]
    if names.count("-") > 1:
        raise InputError("standard input can be read once: name a file for the others")
    for name in names:
        check_readable(name)
    lines = [list(read_lines(name, notice=notice)) for name in names]
    for name, found in zip(names, lines, strict=True):
        if not found:
            raise InputError(f"{name}: empty, there is nothing to score")
        if len(found) != len(lines[0]):
            raise InputError(
                f"{hypothesis} has {len(lines[0])} lines but {name} has {len(found)}: "
                "line N of one must go with line N of the other"
            )
    try:
        scores = corpus_score(
            lines[0],
            lines[1:],
            metrics=metric or METRICS,
            lowercase=lowercase,
            tokenize=tokenize,
        )
    except ValueError as error:
        raise InputError(str(error)) from None
    emit(found.text for found in scores)
