"""Callbacks that log a training to the tools that a command names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_seq.callbacks import ExperimentLogger, MLflowLogger, TableLogger, WandbLogger
from keras_seq.process.experiment_tools import check_experiment_tools
from keras_seq.run import Run

# Points of a curve between two validations.
_POINTS = 10


def experiment_loggers(names: Sequence[str], run: Run) -> list[ExperimentLogger]:
    """Returns a callback for each tool of `EXPERIMENT_TOOLS`.

    TensorBoard needs none, because every training writes its event files. Raises InputError if a
    tool is unknown or not installed.
    """
    check_experiment_tools(names)
    every = max(1, run.settings.training.validate_every // _POINTS)
    directory = run.path.resolve()
    options: dict[str, Any] = {"name": directory.name, "key": str(directory), "every": every}
    parameters = _flat(run.settings.to_dict())
    loggers: list[ExperimentLogger] = []
    for name in dict.fromkeys(names):
        if name == "csv":
            loggers.append(TableLogger(run.path / "log.csv", every))
        elif name == "mlflow":
            loggers.append(MLflowLogger(parameters, **options))
        elif name == "wandb":
            loggers.append(WandbLogger(parameters, **options))
    return loggers


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns nested settings by dotted names."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found
