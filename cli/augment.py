"""`keras-seq augment`: makes training pairs of text in one language."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.output import check_writable, notice
from keras_seq_cli.search_options import RERANK_OPTIONS, with_search_options
from keras_seq_cli.shared_options import Overwrite, Runner, To, Which, Workers
from keras_seq_cli.signals import exit_on_sigterm


# Omit --n-best, because each line gets one translation.
@functools.partial(with_search_options, without=("n_best", *RERANK_OPTIONS))
def augment(
    run: Annotated[str, typer.Argument(help="Run directory that translates TEXT.")],
    text: Annotated[
        list[str],
        typer.Argument(help="Files of sentences in one language, or patterns, plain or .gz."),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="File for the source<TAB>target lines.")
    ],
    text_is: Annotated[
        Literal["target", "source"],
        typer.Option(
            help="Side of TEXT in the pairs. target: back-translation; source: self-training."
        ),
    ] = "target",
    tag: Annotated[
        str, typer.Option(help="Text before each source, such as <bt>, to mark synthetic pairs.")
    ] = "",
    to: To = None,
    which: Which = "best",
    workers: Workers = None,
    runner: Runner = "local",
    overwrite: Overwrite = False,
    *,
    search: dict[str, Any],
) -> None:
    """Translate text in one language, and write pairs to train another run.

    Back-translation: RUN translates from the target language to the source language of the run to
    be trained. If the command was interrupted, the same command resumes it.
    """
    from keras_seq.augmentation import make_synthetic_pairs
    from keras_seq.jobs import require_ray, run_locally, run_on_ray

    if runner == "ray":
        require_ray()
    check_writable(output)
    with exit_on_sigterm():
        counts = make_synthetic_pairs(
            run,
            text,
            output,
            text_is=text_is,
            tag=tag,
            which=which,
            search=search,
            to=to,
            workers=workers,
            runner=run_on_ray if runner == "ray" else run_locally,
            overwrite=overwrite,
            notice=notice,
        )
    notice(
        f"{output}: {counts.pairs:,} pairs; left out: {counts.blank:,} blank lines, "
        f"{counts.untranslated:,} without a translation, {counts.copies:,} copies"
    )
