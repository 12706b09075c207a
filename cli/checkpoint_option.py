"""The option that selects the checkpoint of a run."""

from typing import Annotated

import typer

# What it may be is checked by `CheckpointStore.select`, which knows the stored steps.
Which = Annotated[
    str,
    typer.Option(
        "--which",
        metavar="best|latest|STEP",
        help="Checkpoint to load: best, latest, or the step of a stored one.",
    ),
]
