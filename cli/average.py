"""`keras-seq average`: several checkpoints of a run to a run with their mean."""

from __future__ import annotations

from typing import Annotated

import typer

from keras_seq_cli.output import notice
from keras_seq_cli.quiet import import_quietly


def average(
    run: Annotated[str, typer.Argument(help="Run directory whose checkpoints are averaged.")],
    output: Annotated[str, typer.Argument(help="Run directory to make.")],
    last: Annotated[int | None, typer.Option(min=1, help="So many of the newest.")] = None,
    best: Annotated[
        int | None, typer.Option(min=1, help="This many of those with the best validations.")
    ] = None,
    which: Annotated[
        list[str] | None,
        typer.Option(
            metavar="best|latest|STEP",
            help="A checkpoint to average, instead of --last or --best; may be given again.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete the run that is at OUTPUT.")
    ] = False,
) -> None:
    """Average checkpoints of a run into a run that translates and exports.

    Checkpoints there are as many as training.keep_checkpoints, and the best.
    """
    from keras_seq.run import check_new
    from keras_seq.text import InputError

    if sum(bool(given) for given in (last, best, which)) != 1:
        raise InputError(
            "give either --last or --best, with how many checkpoints to average, or --which"
        )
    check_new(output, overwrite=overwrite)
    averaging = import_quietly("keras_seq.run.averaging")
    averaging.average_run(
        run,
        output,
        last or best,
        of="best" if last is None else "last",
        which=which or (),
        overwrite=overwrite,
        notice=notice,
    )
