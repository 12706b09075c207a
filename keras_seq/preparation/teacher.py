"""The teacher of a word-level distillation: its check and its copy in a run, without Keras."""

from __future__ import annotations

import os
from pathlib import Path

from keras_seq.run import Run
from keras_seq.settings import BackboneSettings, Settings
from keras_seq.text import InputError, Notice


def open_teacher(
    settings: Settings, directory: str | os.PathLike[str], notice: Notice
) -> Run | None:
    """Opens the run of `training.teacher`, if set, before the text is read.

    Raises InputError if it has no weights or another task, or is `directory` itself.
    """
    path = settings.training.teacher
    if path is None:
        return None
    if Path(directory).exists() and Path(path).exists() and Path(path).samefile(directory):
        raise InputError(f"{path}: the teacher and the new run are in the same directory")
    teacher = Run.open(path, notice=notice)
    teacher.require_task(settings.task)
    teacher.require_weights()
    if isinstance(teacher.settings.model, BackboneSettings):
        raise InputError(
            f"{path}: a teacher with a pretrained encoder; distill its translations instead, with "
            "keras-seq distill"
        )
    return teacher


def copy_teacher(run: Run, teacher: Run | None, notice: Notice) -> None:
    """Copies a teacher into the directory of a run whose vocabularies are known.

    So the training resumes with the same teacher, whatever becomes of the original. Raises
    InputError if the vocabularies differ.
    """
    if teacher is None:
        return
    own, others = (
        [vocabulary.to_bytes() for vocabulary in each.vocabularies] for each in (run, teacher)
    )
    if own != others:
        raise InputError(
            f"{teacher.path}: its vocabulary differs from that of {run.path}: a teacher needs the "
            "same vocabulary"
        )
    step = teacher.copy_checkpoint(run.teacher_directory).checkpoints.latest_step
    notice(f"teacher: the best weights of {teacher.path}, of step {step:,}, are copied")
