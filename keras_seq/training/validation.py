"""How a model is measured in the middle of its training, by its task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import keras

from keras_seq.run import Run
from keras_seq.training.autoencoder_validator import AutoencoderValidator
from keras_seq.training.event_log import EventLog
from keras_seq.training.label_validator import LabelValidator
from keras_seq.training.language_model_validator import LanguageModelValidator
from keras_seq.training.translation_validator import TranslationValidator


class Validator(Protocol):
    """Measures a run's model on its validation text, with the averaged weights.

    Attributes:
        monitor: The key of the value that decides which checkpoint is best, one of
            `keras_seq.settings.MONITORS`.
        tie_break: The key of the number that decides between equal values, lower is better; or
            None.
        reason: Why this monitor was chosen, "" if the settings name it or the task has no other.
        signature: The signature of the last score of the monitor, "" if it has none.
    """

    monitor: str
    tie_break: str | None
    reason: str
    signature: str

    def __call__(self, step: int, minutes: float) -> dict[str, float]:
        """Validates after `step` updates, and reports and logs the results."""


_VALIDATORS: dict[str, Callable[..., Validator]] = {
    "language-model": LanguageModelValidator,
    "classify": LabelValidator,
    "tag": LabelValidator,
    "vae": AutoencoderValidator,
}


def make_validator(
    run: Run,
    model: keras.Model,
    fitted: keras.Model,
    notice: Callable[[str], None],
    events: EventLog,
    resumed_monitor: str | None = None,
) -> Any:
    """The validator of a run's task.

    Args:
        run: A prepared run; metrics and samples are appended to its logs.
        model: Its model.
        fitted: What is compiled and trained, of the same weights.
        notice: Called with each line for the user.
        events: Where samples and pictures go.
        resumed_monitor: The monitor of the checkpoint that the training resumes from, or None.

    Raises:
        InputError: If the validation text has nothing that `training.monitor` could measure.
    """
    arguments = (run, model, fitted, notice, events)
    if run.settings.task == "translate":
        return TranslationValidator(*arguments, resumed_monitor)
    return _VALIDATORS[run.settings.task](*arguments)
