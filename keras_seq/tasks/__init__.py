"""Tasks: one module for each thing that a run can learn, imported at its first use."""

from keras_seq.settings import FAMILIES, TASKS
from keras_seq.settings.section import ModelSection
from keras_seq.tasks.task import Task

__all__ = ["ModelSection", "Task", "register_task", "unregister_task"]


def register_task(task: Task, *families: type[ModelSection]) -> None:
    """Adds a task, and the families of models that only this task has.

    Call it in every process before settings of the task are read.

    Args:
        task: The task; its `name` is a new value of the setting `task`.
        *families: Settings of its models; each has a default of `family` and a `model_class`.

    Raises:
        ValueError: If there is a task or a family of that name already.
    """
    for section in families:
        name = section.model_fields["family"].default
        if name in FAMILIES:
            raise ValueError(f"There is a family {name!r} already.")
        FAMILIES[name] = section
    TASKS.add(task)


def unregister_task(task: Task, *families: type[ModelSection]) -> None:
    """Removes a task and families that `register_task` added, such as to define them again.

    Args:
        task: The task.
        *families: The families that were registered with it.

    Raises:
        KeyError: If they are not registered.
        ValueError: If the task belongs to keras_seq.
    """
    TASKS.remove(task.name)
    for section in families:
        del FAMILIES[section.model_fields["family"].default]
