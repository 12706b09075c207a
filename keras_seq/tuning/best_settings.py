"""The settings file of the best trial."""

from __future__ import annotations

from pathlib import Path

from keras_seq.run import Run


def best_settings(directory: Path, file: Path, preset: str | None) -> str:
    """Returns the settings of a trial as TOML, for `keras-seq train --settings`.

    The file names the text files instead of the prepared text, and has no limit of minutes.

    Args:
        directory: The run directory of the trial.
        file: Where the settings will be written, for a comment with the command.
        preset: The preset that the settings were made from, if the user or the trial named it.
    """
    settings = Run.open(directory).settings
    training = settings.training.model_copy(update={"max_minutes": None})
    data = settings.data
    if data.prepared is not None and Path(data.prepared).parent == directory.parent.parent / "text":
        data = data.model_copy(update={"prepared": None})
    settings = settings.model_copy(update={"training": training, "data": data})
    option = "" if preset is None else f" --preset {preset}"
    return f"# keras-seq train RUN{option} --settings {file}\n{settings.to_toml()}"
