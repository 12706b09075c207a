"""A run that another host writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_seq.run.directory import Run
from keras_seq.run.logs import RunLogs
from keras_seq.settings import Settings
from keras_seq.storage.checkpoints import NotFiniteError
from keras_seq.storage.checkpoints.tensor_file import TensorFileError, require_finite


class _FollowedLogs(RunLogs):
    """Logs as that host has them."""

    def append_metrics(self, values: Mapping[str, Any]) -> None:
        pass

    def append_samples(self, text: str) -> None:
        pass

    def truncate(self, sizes: Mapping[str, int]) -> None:
        pass


class ReadOnlyRun(Run):
    """A run as a host has it that does not write: it reads the same files.

    What a training would write is left out. Wrong arrays are refused, so that the
    host ends where the one that writes ends.

    Args:
        run: The run, opened.
        notice: As for `Run.open`.
    """

    def __init__(self, run: Run, *, notice: Callable[[str], None] | None = None) -> None:
        super().__init__(run.path, run.settings, notice=notice)
        self.logs = _FollowedLogs(self.path)

    def update_settings(self, settings: Settings) -> None:
        self.settings = settings

    def check_writable(self) -> None:
        pass

    def write_result(self, result: Mapping[str, Any]) -> None:
        pass

    def remove_result(self) -> None:
        pass

    def write_card(self, markdown: str) -> None:
        pass

    def mark_best(self, step: int) -> None:
        pass

    def save_checkpoint(
        self,
        step: int,
        tensors: Mapping[str, Mapping[str, np.ndarray]],
        state: Mapping[str, Any],
    ) -> Path:
        try:
            for arrays in tensors.values():
                for name, array in arrays.items():
                    require_finite(name, array)
        except TensorFileError as error:
            raise NotFiniteError(f"{self.path}: not saved: {error}") from None
        return self.path
