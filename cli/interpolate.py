"""`keras-seq interpolate`: the texts between two."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import typer

from keras_seq_cli.checkpoint_option import Which
from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.search_options import with_search_options


# A code has no length that a text's could be compared with, and nothing is looked at.
@functools.partial(
    with_search_options,
    without=("coverage_penalty", "min_length_ratio", "max_length_ratio", "n_best"),
)
def interpolate(
    run: Annotated[str, typer.Argument(help="Directory that train made, of a vae.")],
    first: Annotated[str, typer.Argument(help="A line of text.")],
    second: Annotated[str, typer.Argument(help="Another.")],
    steps: Annotated[int, typer.Option(min=0, max=10_000, help="Texts between the two.")] = 5,
    which: Which = "best",
    *,
    search: dict[str, Any],
) -> None:
    """Write the texts on the way from one text's code to another's, both included.

    The first and the last line are what the model makes of the two texts themselves.
    """
    from keras_seq.run import Run

    for text, name in ((first, "FIRST"), (second, "SECOND")):
        if not text.strip():
            raise typer.BadParameter("no text in it", param_hint=f"'{name}'")
    opened = Run.open(run, notice=notice)
    opened.require_task("vae")
    opened.require_weights(which)
    # Looked at before what takes long to import.
    opened.settings.with_search(search)
    autoencoder = import_quietly("keras_seq.inference.autoencoder").Autoencoder.load(
        run, which=which, notice=notice, **search
    )
    emit(autoencoder.interpolate(first, second, steps))
