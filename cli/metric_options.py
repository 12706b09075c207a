"""Options that say which metrics are computed, and how."""

from __future__ import annotations

from typing import Annotated

import typer

Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        "-m",
        help="Metrics with commas between them, such as exact,cer,wer,chrf,bleu,ter; may be "
        "given again.",
    ),
]
Tokenize = Annotated[
    str | None, typer.Option(help="Tokenizer of BLEU, as sacreBLEU names it; 13a if absent.")
]


def split_metrics(given: list[str] | None) -> list[str]:
    """Names of `--metric`, each once, in the order of the command line."""
    names = [name.strip() for value in given or [] for name in value.split(",")]
    return list(dict.fromkeys(names))
