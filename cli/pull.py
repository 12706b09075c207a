"""`keras-seq pull`: downloads a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from keras_seq_cli.output import notice


def pull(
    address: Annotated[str, typer.Argument(help="hf://USER/NAME or hf://USER/NAME@REVISION.")],
    directory: Annotated[str, typer.Argument(help="Run directory to create.")],
) -> None:
    """Download a run from the Hugging Face Hub into a new directory.

    All commands also take the address itself, and keep the download in KERAS_SEQ_CACHE, by default
    ~/.cache/keras-seq.
    """
    from keras_seq.run import Run, check_new
    from keras_seq.run.hub_address import HubAddress, download

    parsed = HubAddress.parse(address)
    check_new(directory)
    download(parsed, Path(directory))
    Run.open(directory, notice=notice).require_weights()
    notice(f"{directory}: downloaded from {address}")
