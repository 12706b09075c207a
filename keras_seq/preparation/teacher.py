"""The teacher of a word-level distillation: its checks and its copy in a run, without Keras."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from keras_seq.preparation.warm_start import require_space_of_weights
from keras_seq.run import Run
from keras_seq.run.vocabularies import are_equal
from keras_seq.settings import BackboneSettings, Settings
from keras_seq.text import InputError, Notice


def open_teacher(
    settings: Settings, directory: str | os.PathLike[str], kept: Run | None, notice: Notice
) -> Run | None:
    """Opens the run of `training.teacher`, if set, before the text is read.

    `kept` is another run whose vocabularies the new run keeps, if any; by default, these are the
    vocabularies of the teacher. Raises InputError if the teacher has no weights, another task or
    other vocabularies, cannot read the text of the new run, or is `directory` itself.
    """
    path = settings.training.teacher
    if path is None:
        return None
    if Path(directory).exists() and Path(path).exists() and Path(path).samefile(directory):
        raise InputError(f"{path}: the teacher and the new run are in the same directory")
    teacher = Run.open(path, notice=notice)
    if teacher.settings.task != settings.task:
        raise InputError(
            f"{path}: a run of task {teacher.settings.task!r}, expected a teacher of the task of "
            f"the new run, {settings.task!r}"
        )
    teacher.require_weights()
    if isinstance(teacher.settings.model, BackboneSettings):
        raise InputError(
            f"{path}: has a pretrained encoder, which no teacher may have: make pairs of its "
            "translations with keras-seq distill instead"
        )
    _check_lengths(settings, teacher)
    if kept is None:
        _check_vocabulary(settings, teacher)
    elif not are_equal(kept.vocabularies, teacher.vocabularies):
        raise InputError(
            f"{path}: its vocabulary differs from that of {kept.path}, expected the same"
        )
    return teacher


def _check_lengths(settings: Settings, teacher: Run) -> None:
    """Raises SettingsError if the teacher has fewer positions than the longest text."""
    lengths = ("max_source_length", "max_target_length")
    update: dict[str, Any] = {name: getattr(settings.data, name) for name in lengths}
    data = teacher.settings.data.model_copy(update=update)
    values = teacher.settings.model_copy(update={"data": data}).to_dict()
    Settings.from_dict(values, where=f"{teacher.path}: ")


def _check_vocabulary(settings: Settings, teacher: Run) -> None:
    """Raises SettingsError if the kind of the vocabularies does not suit the new run."""
    values = settings.model_copy(update={"tokenizer": teacher.settings.tokenizer}).to_dict()
    Settings.from_dict(values, where=f"with the vocabulary of {teacher.path}: ")


def copy_teacher(run: Run, teacher: Run | None, notice: Notice) -> None:
    """Copies a teacher into a new run, which resumes with it, whatever becomes of the original."""
    if teacher is None:
        return
    require_space_of_weights(teacher, run)
    step = teacher.copy_checkpoint(run.teacher_directory).checkpoints.latest_step
    notice(f"teacher: the best weights of {teacher.path}, of step {step:,}, are copied")
