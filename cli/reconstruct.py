"""`keras-seq reconstruct`: text through its code and back."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from keras_seq_cli.checkpoint_option import Which
from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.search_options import with_search_options

# Lines that go together, so that a large file takes little memory.
_LINES = 1024


# A code has no length that a text's could be compared with, and nothing is looked at.
@functools.partial(
    with_search_options, without=("coverage_penalty", "min_length_ratio", "max_length_ratio")
)
def reconstruct(
    run: Annotated[str, typer.Argument(help="Directory that train made, of a vae.")],
    texts: Annotated[
        str | None, typer.Argument(help="File of texts, one a line; stdin if absent.")
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Write score<TAB>text.")] = False,
    which: Which = "best",
    *,
    search: dict[str, Any],
) -> None:
    """Write each line as it comes out of its code: what the code keeps of a text."""
    from keras_seq.inference.output_formats import format_lines
    from keras_seq.run import Run
    from keras_seq.text import check_readable, read_lines

    name = texts or "-"
    check_readable(name)
    opened = Run.open(run, notice=notice)
    opened.require_task("vae")
    opened.require_weights(which)
    # Looked at before what takes long to import.
    n_best = opened.settings.with_search(search).search.n_best
    autoencoder = import_quietly("keras_seq.inference.autoencoder").Autoencoder.load(
        run, which=which, notice=notice, **search
    )
    lines = read_lines(name, notice=notice)

    def written() -> Iterator[str]:
        first = 1
        while chunk := list(itertools.islice(lines, _LINES)):
            results = autoencoder.reconstruct_n_best(chunk)
            yield from format_lines(results, first, n_best=n_best, scores=scores)
            first += len(chunk)

    emit(written())
