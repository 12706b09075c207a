"""Logs of a training for tools that compare experiments."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras

from keras_seq.callbacks.counting_callback import LossCallback, check_positive_integers
from keras_seq.storage import (
    atomic_file,
    check_regular,
    named_errors,
    open_regular,
    open_to_append,
)
from keras_seq.storage.limits import MAX_ROW_BYTES
from keras_seq.text import InputError

# MLflow refuses more parameters in one request.
_PARAMETERS_AT_ONCE = 100
# The tag by which a run of MLflow is found again.
_TAG = "keras_seq.key"
# Python refuses to convert thousands of digits.
_STEP_DIGITS = 18
_ADVICE = "mend or remove the file"


class ExperimentLogger(LossCallback):
    """Abstract base class of callbacks that send the course of a training to another tool.

    Every `every` updates, the mean loss since the last point and the learning rate are sent; after
    each validation, the values of the validation. The number of an update continues that of the
    optimizer, so that a resumed training continues its curves. A subclass defines `start`,
    `write` and `finish`.

    Args:
        every: Positive integer, updates between two points of a curve.
    """

    def __init__(self, every: int = 100) -> None:
        super().__init__()
        check_positive_integers(every=every)
        self.every = every
        self._has_begun = False
        self._early: dict[str, float] = {}

    def on_train_begin(self, logs: Any = None) -> None:
        super().on_train_begin(logs)
        self.step = int(keras.ops.convert_to_numpy(self.model.optimizer.iterations))
        self.start()
        self._has_begun = True
        if self._early:
            self.write(self._early)
            self._early = {}

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if not self._due(self.every):
            return
        rate = float(keras.ops.convert_to_numpy(self.model.optimizer.learning_rate))
        values = {"training/learning_rate": rate}
        loss = self._recent_loss(logs)
        if loss is not None:
            values["training/loss"] = float(loss)
        self.write(values)

    def on_test_end(self, logs: Any = None) -> None:
        values = {f"validation/{name}": float(value) for name, value in (logs or {}).items()}
        if not self._has_begun:
            # A resumed training may validate its checkpoint before it trains.
            self._early = values
        elif values:
            self.write(values)

    def on_train_end(self, logs: Any = None) -> None:
        self.finish()

    def start(self) -> None:
        """Opens the log."""
        raise NotImplementedError

    def write(self, values: Mapping[str, float]) -> None:
        """Logs values of the update `self.step`."""
        raise NotImplementedError

    def finish(self) -> None:
        """Closes the log."""


class TableLogger(ExperimentLogger):
    """Appends the course of a training to a CSV file with the columns step, name and value.

    Lines of later updates, from a training that was interrupted after them, are removed when the
    training resumes. The training then ends with InputError if a line of the file is damaged.

    Args:
        path: The file; not a link, a pipe or a device.
        every: Positive integer, updates between two points of a curve.

    Example:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     callback = TableLogger(f"{folder}/log.csv", every=10)
    """

    def __init__(self, path: str | os.PathLike[str], every: int = 100) -> None:
        super().__init__(every)
        self.path = Path(path)

    def start(self) -> None:
        earlier = _rows(self.path) if check_regular(self.path).exists() else ()
        with atomic_file(self.path) as file:
            file.write(_as_csv(["step", "name", "value"]))
            file.writelines(line for step, line in earlier if step <= self.step)

    def write(self, values: Mapping[str, float]) -> None:
        lines = b"".join(_as_csv([self.step, *item]) for item in values.items())
        with named_errors(self.path), open_to_append(self.path) as file:
            file.write(lines)


def _rows(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yields the step and the text of each line after the first.

    A last line without a line feed is left out, because a full disk cut it off. Raises InputError
    if a line is too long or does not begin with a step.
    """
    with open_regular(path) as file:
        lines = iter(lambda: file.readline(MAX_ROW_BYTES), b"")
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                if len(line) == MAX_ROW_BYTES:
                    raise InputError(
                        f"{path}: line {number:,} has more than {MAX_ROW_BYTES:,} bytes; {_ADVICE}"
                    )
                return
            if number == 1:
                continue
            step = line.split(b",")[0].strip()
            if not step.isdigit() or len(step) > _STEP_DIGITS:
                raise InputError(
                    f"{path}: line {number:,} begins with {step[:40].decode(errors='replace')!r}, "
                    f"expected the number of an update; {_ADVICE}"
                )
            yield int(step), line


def _as_csv(values: Sequence[Any]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(values)
    return line.getvalue().encode()


class MLflowLogger(ExperimentLogger):
    """Logs the course of a training to MLflow, at the tracking address that MLflow is set to.

    Args:
        parameters: Parameters of the run, such as settings by their names.
        name: The name of the run in MLflow; by default MLflow invents one.
        experiment: The experiment; by default that which MLflow is set to.
        key: A name of this training, such as its directory. A run with the same key is continued.
        every: Positive integer, updates between two points of a curve.

    Raises:
        ImportError: If MLflow is not installed.

    Example:

    >>> callback = MLflowLogger({"units": 256}, name="first")  # doctest: +SKIP
    """

    def __init__(
        self,
        parameters: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        experiment: str | None = None,
        key: str | None = None,
        every: int = 100,
    ) -> None:
        super().__init__(every)
        import mlflow

        self._mlflow = mlflow
        self.parameters = dict(parameters or {})
        self.name, self.experiment, self.key = name, experiment, key

    def start(self) -> None:
        mlflow = self._mlflow
        if self.experiment is not None:
            mlflow.set_experiment(self.experiment)
        earlier = self._earlier_run()
        if earlier is not None:
            mlflow.start_run(run_id=earlier)
            return
        tags = {_TAG: _identifier(self.key)} if self.key else None
        mlflow.start_run(run_name=self.name, tags=tags)
        items = list(self.parameters.items())
        for start in range(0, len(items), _PARAMETERS_AT_ONCE):
            mlflow.log_params(dict(items[start : start + _PARAMETERS_AT_ONCE]))

    def _earlier_run(self) -> str | None:
        if not self.key:
            return None
        condition = f"tags.`{_TAG}` = '{_identifier(self.key)}'"
        found = self._mlflow.search_runs(
            filter_string=condition, output_format="list", max_results=1
        )
        return found[0].info.run_id if found else None

    def write(self, values: Mapping[str, float]) -> None:
        self._mlflow.log_metrics(dict(values), step=self.step)

    def finish(self) -> None:
        self._mlflow.end_run()


class WandbLogger(ExperimentLogger):
    """Logs the course of a training to Weights & Biases.

    Args:
        parameters: Parameters of the run, such as settings by their names.
        name: The name of the run; by default Weights & Biases invents one.
        project: The project; by default that of the environment variable `WANDB_PROJECT`.
        key: A name of this training, such as its directory. A run with the same key is continued.
        every: Positive integer, updates between two points of a curve.

    Raises:
        ImportError: If the package wandb is not installed.

    Example:

    >>> callback = WandbLogger({"units": 256}, project="dates")  # doctest: +SKIP
    """

    def __init__(
        self,
        parameters: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        project: str | None = None,
        key: str | None = None,
        every: int = 100,
    ) -> None:
        super().__init__(every)
        import wandb

        self._wandb = wandb
        self.parameters = dict(parameters or {})
        self.name, self.project, self.key = name, project, key
        self.run: Any = None

    def start(self) -> None:
        identifier = _identifier(self.key) if self.key else None
        self.run = self._wandb.init(
            project=self.project,
            name=self.name,
            id=identifier,
            resume="allow" if identifier else None,
            config=self.parameters,
        )

    def write(self, values: Mapping[str, float]) -> None:
        self.run.log(dict(values), step=self.step)

    def finish(self) -> None:
        self.run.finish()


def _identifier(key: str) -> str:
    """Returns letters and digits that stand for a name with any characters."""
    return hashlib.sha256(key.encode()).hexdigest()[:16]
