"""`keras-seq reconstruct`: encodes lines with a VAE and decodes the latent codes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.search_options import RERANK_OPTIONS, with_search_options
from keras_seq_cli.shared_options import TextsArgument, Which

# Lines per call of the model, to limit the memory for a large file.
_LINES = 1024


# Omit the options that need attention or a source length, because a VAE decodes latent codes.
@functools.partial(
    with_search_options,
    without=("coverage_penalty", "min_length_ratio", "max_length_ratio", *RERANK_OPTIONS),
)
def reconstruct(
    run: Annotated[str, typer.Argument(help="Run directory of a VAE.")],
    texts: TextsArgument = None,
    scores: Annotated[bool, typer.Option("--scores", help="Print score<TAB>text.")] = False,
    which: Which = "best",
    *,
    search: dict[str, Any],
) -> None:
    """Encode each line with a VAE and print the text decoded from the latent code."""
    from keras_seq.run import Run
    from keras_seq.text import check_readable, read_lines

    name = texts or "-"
    check_readable(name)
    opened = Run.open(run, notice=notice)
    opened.require_task("vae")
    opened.require_weights(which)
    # Report invalid settings before the slow import of Keras.
    n_best = opened.settings.with_search(search).search.n_best
    autoencoder = import_quietly("keras_seq.inference.autoencoder").Autoencoder.load(
        run, which=which, notice=notice, **search
    )
    lines = read_lines(name, notice=notice)
    emit(_reconstructions(autoencoder, lines, n_best=n_best, scores=scores))


def _reconstructions(
    autoencoder: Any, lines: Iterator[str], *, n_best: int, scores: bool
) -> Iterator[str]:
    from keras_seq.inference.output_formats import format_lines

    first = 1
    while chunk := list(itertools.islice(lines, _LINES)):
        results = autoencoder.reconstruct_n_best(chunk)
        yield from format_lines(results, first, n_best=n_best, scores=scores)
        first += len(chunk)
