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
    cycles: Annotated[
        int | None,
        typer.Option(min=1, help="Average those at the ends of the N newest cycles."),
    ] = None,
    which: Annotated[
        list[str] | None,
        typer.Option(
            metavar="best|latest|STEP",
            help="Checkpoint to average, instead of a number of them; repeatable.",
        ),
    ] = None,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="Average the probabilities instead of the weights: the new run is an ensemble.",
        ),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Average checkpoints of a run into a new run.

    A run keeps the best checkpoint, the newest training.keep_checkpoints checkpoints, and those at
    the ends of training.cycles.
    """
    from keras_seq.run import check_new
    from keras_seq.text import InputError

    selections = {"--last": last, "--best": best, "--cycles": cycles, "--which": which}
    received = [name for name, value in selections.items() if value]
    if len(received) != 1:
        raise InputError(
            f"received {' and '.join(received) or 'none'}, expected one of --last, --best, "
            "--cycles and --which"
        )
    check_new(output, overwrite=overwrite)
    averaging = import_quietly("keras_seq.run.averaging")
    averaging.average_run(
        run,
        output,
        last or best or cycles,
        of="last" if last else "best" if best else "cycles",
        which=which or (),
        probabilities=probabilities,
        overwrite=overwrite,
        notice=notice,
    )
