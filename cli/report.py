"""`keras-seq report`: writes a page about a trained run."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from keras_seq_cli.output import check_writable, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.shared_options import Which
from keras_seq_cli.test_set_options import with_test_set_options


@with_test_set_options
def report(
    run: Annotated[str, typer.Argument(help="Run directory.")],
    lines: Annotated[
        int, typer.Option(min=1, help="Lines to evaluate; of more, some are chosen evenly.")
    ] = 500,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="HTML file to write; by default report.html in RUN."),
    ] = None,
    which: Which = "best",
    *,
    files: Any,
) -> None:
    """Write a page with the training curves, scores, worst lines, attention and samples of a run.

    Without the file of a test set, the validation text is used. The page is one HTML file that
    loads nothing else.
    """
    from keras_seq.operating_system import usable_cores
    from keras_seq.process.threads import configure_threads
    from keras_seq.run import Run

    opened = Run.open(run, notice=notice)
    path = output or str(opened.path / "report.html")
    opened.require_weights(which)
    check_writable(path)
    sources, references, name = None, None, None
    if files.is_given:
        name = files.name
        sources, references = zip(*files.read(opened, notice), strict=True)
    notice(f"{run}: evaluating at most {lines:,} lines")
    configure_threads(usable_cores())
    page = import_quietly("keras_seq.analysis.reports.reporting").report(
        run, sources, references, name=name, which=which, lines=lines, notice=notice
    )
    page.save(path)
    notice(f"{path} written")
