"""`keras-seq prepare`: encodes text as token ids, for any number of runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from keras_seq_cli.output import notice
from keras_seq_cli.shared_options import (
    Overwrite,
    Preset,
    Runner,
    Seed,
    SetSettings,
    SettingsFile,
    Workers,
    list_overrides,
    with_text_options,
)
from keras_seq_cli.signals import exit_on_sigterm


@with_text_options
def prepare(
    directory: Annotated[str, typer.Argument(help="Directory to create or resume.")],
    text_settings: dict[str, Any],
    preset: Preset = None,
    settings: SettingsFile = None,
    set_: SetSettings = None,
    seed: Seed = None,
    workers: Workers = None,
    runner: Runner = "local",
    overwrite: Overwrite = False,
) -> None:
    """Learn a vocabulary and encode text for several runs.

    If preparation was interrupted, the same command resumes it. To train on the prepared text, use
    keras-seq train with --prepared DIRECTORY.
    """
    from keras_seq.jobs import WorkerExecutor, require_ray, run_locally, run_on_ray
    from keras_seq.preparation import check_directory, find_run, open_or_prepare, resolve_settings
    from keras_seq.settings import SettingsError

    if runner == "ray":
        require_ray()
    check_directory(directory, overwrite=overwrite)
    resolved, counts = resolve_settings(
        preset=preset,
        file=settings,
        overrides=list_overrides(set_, {**text_settings, "seed": seed}),
        notice=notice,
        earlier=None if overwrite else find_run(directory),
    )
    for key, value in (
        ("data.prepared", resolved.data.prepared),
        ("training.from_run", resolved.training.from_run),
    ):
        if value is not None:
            raise SettingsError(f"{key}: received {value!r}; `prepare` accepts only text")
    executor = WorkerExecutor(
        directory,
        workers=workers,
        runner=run_on_ray if runner == "ray" else run_locally,
        notice=notice,
    )
    with exit_on_sigterm():
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
    if resolved.training.teacher is not None:
        option += f"--set training.teacher={resolved.training.teacher} "
    notice(f"{directory}: prepared; train with: keras-seq train RUN {option}--prepared {directory}")
