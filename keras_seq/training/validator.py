"""Evaluates a run's model during its training, and reports the results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import keras
import numpy as np

from keras_seq import backend
from keras_seq.data import TokenCorpus, sequential_batches
from keras_seq.run import Run
from keras_seq.training.event_log import EventLog
from keras_seq.training.feed import batch_shapes
from keras_seq.training.state import averaged_weights

Batches = Iterable[dict[str, np.ndarray]]


@dataclass(frozen=True)
class Sample:
    """A sample output of the model, with the validation line that the model read, if any.

    `title` is a name such as "line 3". A field with the label "" is shown next to the title.
    """

    title: str
    fields: Sequence[tuple[str, str]]

    def lines(self, step: int) -> list[str]:
        """The sample as lines for the user."""
        head = f"  step {step:,}, {self.title}"
        if len(self.fields) == 1 and not self.fields[0][0]:
            return [f"{head}: {self.fields[0][1]}"]
        width = max((len(label) for label, _ in self.fields), default=0)
        return [head, *(f"    {label:{width}} {text}" for label, text in self.fields)]


@dataclass(frozen=True)
class Report:
    """The results of one validation.

    `values` are numbers by name, including the monitored value. `summary` describes them for the
    user. `pictures` are PNG files by name, for TensorBoard. `signature` is the signature of the
    monitored score, or "". `logged` has more entries for the log of metrics, and `warning` is a
    line for the user, or None.
    """

    values: dict[str, float]
    summary: str
    samples: Sequence[Sample] = ()
    pictures: dict[str, list[bytes]] = field(default_factory=dict)
    signature: str = ""
    logged: dict[str, str] = field(default_factory=dict)
    warning: str | None = None


class Evaluation(Protocol):
    """Interface of a task's evaluation of a model on the validation text of a run.

    `monitor`, one of `keras_seq.settings.MONITORS`, is the key of the value that selects the best
    checkpoint. `tie_break` is None or the key of a value that breaks ties; lower is better.
    `reason` explains the choice of the monitor. It is "" if the settings name the monitor or there
    is only one. `notices` are lines for the user at the start of a training.
    """

    monitor: str
    tie_break: str | None
    reason: str
    notices: Sequence[str]

    def __call__(self, batches: Batches, *, pictures: bool) -> Report:
        """Evaluates the model with its current weights on batches of `sequential_batches`."""


class Validator:
    """Runs a task's evaluation with the averaged weights, and writes the results to all logs.

    `train_model` is the compiled model, with the weights of the run's model. `events` receives
    samples and pictures. `signature` is the signature of the last monitored score, or "".
    """

    def __init__(
        self,
        run: Run,
        train_model: keras.Model,
        evaluation: Evaluation,
        notice: Callable[[str], None],
        events: EventLog,
    ) -> None:
        self.signature = ""
        self.evaluation = evaluation
        self._run = run
        self._train_model = train_model
        self._notice = notice
        self._events = events
        self._corpus = TokenCorpus.open(run.valid_directory)
        self._warned = False
        for line in evaluation.notices:
            notice(line)

    def __call__(self, step: int, minutes: float) -> dict[str, float]:
        """Validates after `step` updates, reports the results and returns the values."""
        backend.sync_variables(self._train_model)
        tokens = self._run.settings.training.batch_tokens
        batches = sequential_batches(self._corpus, batch_tokens=tokens, shapes=batch_shapes())
        with averaged_weights(self._train_model):
            # Either all hosts make pictures or none do, because hosts compute pictures together.
            report = self.evaluation(batches, pictures=self._events.installed)
        self.signature = report.signature
        self._notice(f"validation at step {step:,}, {minutes:.1f} min: {report.summary}")
        if report.warning and not self._warned:
            self._warned = True
            self._notice(report.warning)
        lines = [line for sample in report.samples for line in sample.lines(step)]
        for line in lines:
            self._notice(line)
        self._run.logs.append_samples("\n".join(lines))
        rows = [tuple(text for _, text in sample.fields) for sample in report.samples]
        self._events.write_samples(step, rows)
        for name, pictures in report.pictures.items():
            self._events.write_pictures(step, name, pictures)
        self._run.logs.append_metrics(
            {
                "kind": "validation",
                "step": step,
                **rounded({"minutes": minutes, **report.values}),
                "monitor": self.evaluation.monitor,
                **report.logged,
            }
        )
        return report.values


def rounded(numbers: Mapping[str, float]) -> dict[str, float | None]:
    """Rounds numbers for JSON to six digits; None replaces numbers that are not finite."""

    def round_number(value: float) -> float | None:
        if isinstance(value, int):
            return value
        return float(f"{value:.6g}") if math.isfinite(value) else None

    return {key: round_number(value) for key, value in numbers.items()}
