"""`keras-seq tune`: searches settings in a given time."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from keras_seq_cli.output import emit, notice
from keras_seq_cli.shared_options import (
    Overwrite,
    Preset,
    Seed,
    SetSettings,
    SettingsFile,
    list_overrides,
    with_text_options,
)
from keras_seq_cli.signals import exit_on_sigterm


@with_text_options
def tune(
    folder: Annotated[str, typer.Argument(help="Folder to create, or to resume a search in.")],
    minutes: Annotated[float, typer.Option(help="Minutes of training of all trials together.")],
    text_settings: dict[str, Any],
    prepared: Annotated[
        str | None, typer.Option(help="Directory made by keras-seq prepare, instead of text.")
    ] = None,
    preset: Preset = None,
    settings: SettingsFile = None,
    set_: SetSettings = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW..HIGH|NAME=A,B,C",
            help="Setting to search, or preset=A,B; repeatable. By default the learning rate, "
            "batch size, dropout and width.",
        ),
    ] = None,
    trials: Annotated[int, typer.Option(help="Trials in the first round.")] = 9,
    seed: Seed = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print trials, rounds and minutes, without training.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Search settings in a given time, by successive halving.

    All trials train for a short time, and the best third continues, until one is left. If the
    command was interrupted, the same command resumes it. Needs the extra tune.
    """
    from keras_seq.process.devices import check_backend
    from keras_seq.tuning import Tuning
    from keras_seq.tuning.tables import aligned

    check_backend(os.environ.get("KERAS_BACKEND"))
    flags = {**text_settings, "data.prepared": prepared, "seed": seed}
    tuning = Tuning(
        folder,
        minutes=minutes,
        trials=trials,
        search=search or (),
        preset=preset,
        file=settings,
        overrides=list_overrides(set_, flags),
        overwrite=overwrite,
        notice=notice,
    )
    if dry_run:
        emit(tuning.plan())
        return
    with exit_on_sigterm():
        result = tuning.run()
    emit(aligned(result.table))
    notice(f"the best run is {result.run}, its settings are in {result.settings_file}")
