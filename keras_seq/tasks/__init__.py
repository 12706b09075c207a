"""Tasks: one module for each task that a run can learn, imported at its first use."""

from keras_seq.tasks.task import Task

__all__ = ["Task"]
