"""Names of the tools that a training can be logged to. Does not import these tools."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from keras_seq.text import InputError

# The package of each tool, which is also the extra that installs it; "" for none.
EXPERIMENT_TOOLS = {
    "csv": "",
    "mlflow": "mlflow",
    "tensorboard": "tensorboard",
    "wandb": "wandb",
}


def check_experiment_tools(names: Sequence[str]) -> None:
    """Raises InputError if a tool is unknown or not installed."""
    for name in names:
        if name not in EXPERIMENT_TOOLS:
            expected = ", ".join(EXPERIMENT_TOOLS)
            raise InputError(f"--log: received {name!r}, expected one of {expected}")
        package = EXPERIMENT_TOOLS[name]
        if package and importlib.util.find_spec(package) is None:
            raise InputError(
                f"--log {name}: {package} is not installed: "
                f"python -m pip install 'keras-seq[{package}]'"
            )
