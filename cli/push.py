"""`keras-seq push`: uploads the model of a run."""

from __future__ import annotations

from typing import Annotated

import typer

from keras_seq_cli.output import emit
from keras_seq_cli.shared_options import Which


def push(
    run: Annotated[str, typer.Argument(help="Run directory.")],
    address: Annotated[str, typer.Argument(help="hf://USER/NAME.")],
    which: Which = "best",
    private: Annotated[
        bool, typer.Option("--private", help="Make a new repository private.")
    ] = False,
    license_: Annotated[
        str | None,
        typer.Option("--license", help="License of the model, as in apache-2.0, for its card."),
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Language of the output, as in de, for the card.")
    ] = None,
) -> None:
    """Upload the model of a run to the Hugging Face Hub.

    The text of the training is not uploaded. Log in first with `hf auth login`, or set HF_TOKEN.
    """
    from keras_seq.run.sharing import push as push_run

    url = push_run(run, address, which=which, private=private, license=license_, language=language)
    emit([url])
