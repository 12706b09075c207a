"""`keras-seq translate`: line N in, line N out."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from keras_seq_cli.checkpoint_option import Which
from keras_seq_cli.output import notice
from keras_seq_cli.output_options import OutputOptions, with_output_options
from keras_seq_cli.search_options import with_search_options
from keras_seq_cli.signals import sigterm_exits
from keras_seq_cli.translate_export import ExportModel, find_export, refuse_options
from keras_seq_cli.translate_run import RunModel, load_ctranslate2
from keras_seq_cli.translate_text import TextJob, translate_text


class Engine(enum.StrEnum):
    """What computes, and where; Typer has no list of literals."""

    TENSORFLOW = "tensorflow"
    CTRANSLATE2 = "ctranslate2"
    RAY = "ray"


@with_search_options
@with_output_options
def translate(
    run: Annotated[str, typer.Argument(help="Directory that train made, or export.")],
    text: Annotated[
        str | None, typer.Argument(help="A sentence, or a file of them; stdin if absent.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="File to write; stdout if absent.")
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Write score<TAB>translation.")] = False,
    engine: Annotated[
        list[Engine] | None,
        typer.Option(
            help="What computes: tensorflow, or ctranslate2 (an extra, for Transformers). And ray "
            "(an extra), for the workers of --input to be on a Ray cluster. May be given twice.",
        ),
    ] = None,
    quantize: Annotated[
        str | None, typer.Option(help="Arithmetic of ctranslate2: float32 or int8.")
    ] = None,
    prefixes: Annotated[
        str | None,
        typer.Option(help="File: what the translation of each line begins with, or a blank line."),
    ] = None,
    which: Which = "best",
    ensemble: Annotated[
        list[str] | None,
        typer.Option(
            help="Another run, with the same vocabulary, that translates together with this one; "
            "may be given again."
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="File to translate, or 'texts/*.en'; may be given again."),
    ] = None,
    output_dir: Annotated[
        str | None, typer.Option(help="Directory for a file for each --input, of the same name.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes for --input; one for each 4 cores if absent."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete what another job left in --output-dir.")
    ] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Load any SavedModel, whatever its graph may do.")
    ] = False,
    *,
    shown: OutputOptions,
    search: dict[str, Any],
) -> None:
    """Translate lines: a sentence, a file, or stdin; or many files. A blank line stays blank.

    With --input the same command again goes on where the last one was stopped or killed.

    Instead of a run it takes a SavedModel that export made, or the directory of its versions. The
    search is part of it, and it starts in less than half the time. A SavedModel is a program: one
    with operations that keras-seq never exports is refused, unless --trust is given.
    """
    job = TextJob(prefixes, scores, shown)
    version = find_export(run)
    if version is not None:
        others = {
            "engine": any(one != Engine.TENSORFLOW for one in engine or []),
            "quantize": quantize is not None,
            "prefixes": prefixes is not None,
            "which": which != "best",
            "ensemble": bool(ensemble),
            "input": bool(inputs),
            "output_dir": output_dir is not None,
            "workers": workers is not None,
            "overwrite": overwrite,
        }
        refuse_options(shown, search, others)
        translate_text(
            ExportModel(version, search.get("batch_size"), trust=trust), text, output, job
        )
        return

    if trust:
        raise typer.BadParameter("is for a SavedModel, not for a run", param_hint="'--trust'")
    from keras_seq.run import Run

    opened = Run.open(run, notice=notice)
    opened.require_task("translate")
    opened.require_weights(which)
    settings = opened.settings.with_search(search).search
    computing, on_ray = _engines(engine or [])
    if quantize is not None and computing != "ctranslate2":
        raise typer.BadParameter("needs --engine ctranslate2", param_hint="'--quantize'")
    for name, given in (("ensemble", ensemble), ("prefixes", prefixes)):
        if given and (inputs or computing == "ctranslate2"):
            unfit = "--input" if inputs else "--engine ctranslate2"
            raise typer.BadParameter(f"not with {unfit}", param_hint=f"'--{name}'")
    if prefixes is not None and "prefix" in search:
        raise typer.BadParameter("not with --prefixes", param_hint="'--prefix'")
    shown.check(
        engine=computing,
        many_files=bool(inputs),
        ensemble=bool(ensemble),
        prefixes=prefixes is not None,
    )
    if inputs:
        if output_dir is None or text is not None or output is not None:
            raise typer.BadParameter(
                "needs --output-dir, and no other text or --output", param_hint="'--input'"
            )
        if computing == "ctranslate2":
            # What is wrong with it is said before there are any workers.
            load_ctranslate2(run, which, quantize, search)
        _translate_files(
            run,
            inputs,
            output_dir,
            on_ray=on_ray,
            which=which,
            search=search,
            engine=computing,
            quantize=quantize or "float32",
            scores=scores,
            workers=workers,
            overwrite=overwrite,
        )
        return
    for name, needless in (
        ("output-dir", output_dir is not None),
        ("workers", workers is not None),
        ("overwrite", overwrite),
        ("engine", on_ray),
    ):
        if needless:
            said = "ray is for the files of --input" if name == "engine" else "needs --input"
            raise typer.BadParameter(said, param_hint=f"'--{name}'")
    together = tuple(ensemble or ())
    model = RunModel(run, opened, which, search, settings, computing, quantize, together, shown)
    translate_text(model, text, output, job)


def _engines(given: Sequence[Engine]) -> tuple[str, bool]:
    """What computes, and whether on Ray."""
    computing = sorted({engine.value for engine in given} - {"ray"})
    if len(computing) > 1:
        raise typer.BadParameter(
            "tensorflow or ctranslate2, not both: either may be given with ray",
            param_hint="'--engine'",
        )
    return (computing or ["tensorflow"])[0], Engine.RAY in given


def _translate_files(
    run: str, inputs: list[str], directory: str, *, on_ray: bool, **options: Any
) -> None:
    from keras_seq.jobs import require_ray, run_locally, run_on_ray, translate_files

    if on_ray:
        require_ray()
    with sigterm_exits():
        done = translate_files(
            run,
            inputs,
            directory,
            runner=run_on_ray if on_ray else run_locally,
            notice=notice,
            **options,
        )
    notice(f"{directory}: {done.files:,} files of {done.lines:,} lines are translated")
