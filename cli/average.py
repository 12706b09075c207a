"""`keras-seq average`: averages checkpoints of a run."""

from __future__ import annotations

from typing import Annotated

import typer

from keras_seq_cli.output import notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.shared_options import Overwrite


def average(
    run: Annotated[str, typer.Argument(help="Run directory.")],
    output: Annotated[str, typer.Argument(help="Run directory to create.")],
    last: Annotated[int | None, typer.Option(min=1, help="Average the N newest.")] = None,
    best: Annotated[
        int | None, typer.Option(min=1, help="Average the N with the best validation metric.")
    ] = None,
    which: Annotated[
        list[str] | None,
        typer.Option(
            metavar="best|latest|STEP",
            help="Checkpoint to average, instead of --last or --best; repeatable.",
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Average the weights of checkpoints into a new run.

    A run keeps the best checkpoint and the newest training.keep_checkpoints checkpoints.
    """
    from keras_seq.run import check_new
    from keras_seq.text import InputError

    if sum(map(bool, (last, best, which))) != 1:
        present = [("--last", last), ("--best", best), ("--which", which)]
        received = " and ".join(name for name, value in present if value) or "none"
        raise InputError(f"received {received}, expected one of --last, --best and --which")
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
