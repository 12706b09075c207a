"""`keras-seq interpolate`: decodes points between the latent codes of two texts."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import typer

from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.search_options import RERANK_OPTIONS, with_search_options
from keras_seq_cli.shared_options import Which


# Omit the options that use attention weights, a source length or several texts per latent code.
@functools.partial(
    with_search_options,
    without=(
        *("coverage_penalty", "min_length_ratio", "max_length_ratio", "n_best"),
        *RERANK_OPTIONS,
    ),
)
def interpolate(
    run: Annotated[str, typer.Argument(help="Run directory of a VAE.")],
    first: Annotated[str, typer.Argument(help="First line of text.")],
    second: Annotated[str, typer.Argument(help="Second line of text.")],
    steps: Annotated[
        int, typer.Option(min=0, max=10_000, help="Number of texts between the two.")
    ] = 5,
    which: Which = "best",
    *,
    search: dict[str, Any],
) -> None:
    """Print texts decoded from points between the latent codes of two texts.

    The first and the last line are the reconstructions of the two texts.
    """
    from keras_seq.run import Run

    for text, name in ((first, "FIRST"), (second, "SECOND")):
        if not text.strip():
            raise typer.BadParameter("received blank text", param_hint=f"'{name}'")
    opened = Run.open(run, notice=notice)
    opened.require_task("vae")
    opened.require_weights(which)
    # Report invalid settings before the slow import of Keras.
    opened.settings.with_search(search)
    autoencoder = import_quietly("keras_seq.inference.autoencoder").Autoencoder.load(
        run, which=which, notice=notice, **search
    )
    emit(autoencoder.interpolate(first, second, steps))
