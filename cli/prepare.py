"""`keras-seq prepare`: text files to token ids that many runs share."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.output import notice
from keras_seq_cli.signals import sigterm_exits
from keras_seq_cli.text_options import with_text_options


@with_text_options
def prepare(
    directory: Annotated[str, typer.Argument(help="Directory to make, or to go on in.")],
    given: dict[str, Any],
    preset: Annotated[
        str | None,
        typer.Option(
            help="Named settings, or hub:NAME of an encoder; chosen by the text's size if absent."
        ),
    ] = None,
    settings: Annotated[
        str | None, typer.Option(help="TOML file of settings, over the preset.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting; may be given again."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; one for each 4 cores if absent.")
    ] = None,
    engine: Annotated[
        Literal["local", "ray"],
        typer.Option(help="Where they are: on this machine, or (an extra) on a Ray cluster."),
    ] = "local",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete the run that is there.")
    ] = False,
) -> None:
    """Prepare text for training: vocabulary and token ids, which many runs may share.

    The same command again goes on where the last one was stopped or killed. Train with
    --prepared DIRECTORY in place of the text.
    """
    from keras_seq.jobs import WorkerExecutor, require_ray, run_locally, run_on_ray
    from keras_seq.preparation import (
        check_directory,
        find_run,
        open_or_prepare,
        resolve_settings,
    )
    from keras_seq.settings import SettingsError

    flags = {**given, "seed": seed}
    if engine == "ray":
        require_ray()
    check_directory(directory, overwrite=overwrite)
    resolved, counts = resolve_settings(
        preset=preset,
        file=settings,
        overrides=[
            *(set_ or []),
            *(f"{key}={value}" for key, value in flags.items() if value is not None),
        ],
        notice=notice,
        earlier=None if overwrite else find_run(directory),
    )
    for key, value in (
        ("data.prepared", resolved.data.prepared),
        ("training.from_run", resolved.training.from_run),
    ):
        if value is not None:
            raise SettingsError(f"{key}: received {value!r}; `prepare` takes text alone")
    executor = WorkerExecutor(
        directory,
        workers=workers,
        runner=run_on_ray if engine == "ray" else run_locally,
        notice=notice,
    )
    with sigterm_exits():
        open_or_prepare(
            resolved,
            directory,
            overwrite=overwrite,
            notice=notice,
            counts=counts,
            executor=executor,
        )
    option = "" if resolved.task == "translate" else f"--task {resolved.task} "
    if resolved.training.from_hub is not None:
        option += f"--preset hub:{resolved.training.from_hub} "
    notice(f"{directory}: prepared; train with: keras-seq train RUN {option}--prepared {directory}")
