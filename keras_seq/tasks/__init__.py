"""Tasks: one module for each task that a run can learn, imported at its first use."""

from keras_seq.settings import FAMILIES, TASKS
from keras_seq.settings.section import ModelSection
from keras_seq.tasks.task import Task

__all__ = ["ModelSection", "Task", "register_task", "unregister_task"]


def register_task(task: Task, *families: type[ModelSection]) -> None:
    """Adds a task, and the families of models that only this task has.

    Call this in every process before settings of the task are read. Each family has a default of
    `family` and a `model_class`. Raises ValueError if a task or family of that name exists.
    """
    for section in families:
        name = section.model_fields["family"].default
        if name in FAMILIES:
            raise ValueError(f"There is a family {name!r} already.")
        FAMILIES[name] = section
    TASKS.add(task)


def unregister_task(task: Task, *families: type[ModelSection]) -> None:
    """Removes a task and its families, for example to define them again.

    Raises KeyError if they are not registered, and ValueError if the task belongs to keras_seq.
    """
    TASKS.remove(task.name)
    for section in families:
        del FAMILIES[section.model_fields["family"].default]
