"""`keras-seq distill`: makes training pairs whose targets are translations by a teacher."""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.output import check_writable, notice
from keras_seq_cli.search_options import RERANK_OPTIONS, with_search_options
from keras_seq_cli.shared_options import Ensemble, OverwriteFile, Runner, Which, Workers
from keras_seq_cli.signals import exit_on_sigterm


# Omit --n-best, because each source gets one translation.
@functools.partial(with_search_options, without=("n_best", *RERANK_OPTIONS))
def distill(
    teacher: Annotated[str, typer.Argument(help="Run that translates the sources.")],
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="File for the pairs; gzipped if its name ends in .gz."),
    ],
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            help="source<TAB>target lines, or CSV; by default the training text of TEACHER; "
            "repeatable, or a pattern."
        ),
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option(help="Source sentences, one per line, instead of --pairs.")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="Target sentences, parallel to --source.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Columns of --pairs, by number or header: source=1,target=2,features=3."),
    ] = None,
    closest: Annotated[
        Literal["none", "chrf", "bleu", "exact"],
        typer.Option(
            help="Metric that chooses the candidate closest to the target; none: the best."
        ),
    ] = "none",
    candidates: Annotated[
        int, typer.Option(min=2, max=100, help="Translations that --closest chooses from.")
    ] = 8,
    which: Which = "best",
    ensemble: Ensemble = None,
    workers: Workers = None,
    runner: Runner = "local",
    overwrite: OverwriteFile = False,
    *,
    search: dict[str, Any],
) -> None:
    """Replace the targets of a corpus by a teacher's translations, to train a smaller model.

    If the command was interrupted, the same command resumes it.
    """
    from keras_seq.augmentation import HELD_OUT_ADVICE, make_distilled_pairs
    from keras_seq.jobs import require_ray, run_locally, run_on_ray
    from keras_seq.text import PairFiles

    if runner == "ray":
        require_ray()
    check_writable(output)
    files = None
    if pairs or source or target:
        files = PairFiles(pairs=pairs, source=source, target=target, columns=columns)
        files.check()
    elif columns is not None:
        raise typer.BadParameter("needs --pairs", param_hint="'--columns'")
    with exit_on_sigterm():
        counts = make_distilled_pairs(
            teacher,
            output,
            files=files,
            closest=closest,
            candidates=candidates,
            which=which,
            ensemble=ensemble or (),
            search=search,
            workers=workers,
            runner=run_on_ray if runner == "ray" else run_locally,
            overwrite=overwrite,
            notice=notice,
        )
    notice(
        f"{output}: {counts.pairs:,} pairs, {counts.changed:,} with a new target; left out: "
        f"{counts.untranslated:,} without a translation, {counts.held_out:,} held out by the "
        "teacher"
    )
    notice(f"{output}: {HELD_OUT_ADVICE}")
