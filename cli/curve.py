"""`keras-seq curve`: measures what more training text would bring."""

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
def curve(
    folder: Annotated[str, typer.Argument(help="Folder to create, or to resume a curve in.")],
    text_settings: dict[str, Any],
    preset: Preset = None,
    settings: SettingsFile = None,
    set_: SetSettings = None,
    max_minutes: Annotated[
        float | None, typer.Option(help="Stop each run after N minutes.")
    ] = None,
    max_steps: Annotated[int | None, typer.Option(help="Stop each run after N updates.")] = None,
    max_epochs: Annotated[
        int | None,
        typer.Option(help="Stop each run after the updates of N epochs of the whole text."),
    ] = None,
    seed: Seed = None,
    overwrite: Overwrite = False,
) -> None:
    """Train on 1/8, 1/4, 1/2 and all of the text, and predict the score with twice as much.

    If the command was interrupted, the same command resumes it.
    """
    from keras_seq.process.devices import check_backend
    from keras_seq.tuning import measure_learning_curve
    from keras_seq.tuning.tables import aligned

    check_backend(os.environ.get("KERAS_BACKEND"))
    flags = {
        **text_settings,
        "training.max_minutes": max_minutes,
        "training.max_steps": max_steps,
        "training.max_epochs": max_epochs,
        "seed": seed,
    }
    with exit_on_sigterm():
        result = measure_learning_curve(
            folder,
            preset=preset,
            file=settings,
            overrides=list_overrides(set_, flags),
            overwrite=overwrite,
            notice=notice,
        )
    emit(aligned(result.table))
    emit([result.message])
