"""The result of a training."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from keras_seq.run import Run
from keras_seq.settings import MONITORS


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training.

    Attributes:
        path: The run directory.
        steps: Number of updates.
        minutes: Wall time in minutes, including earlier processes.
        metric: The metric that selects the best checkpoint, one of `keras_seq.settings.MONITORS`.
        best: Value of the metric in the best validation.
        best_step: Update of the best validation.
        signature: Signature of a text score, "" for other metrics.
        reason: Why the metric was chosen; "" if the settings name it or the task has only one.
    """

    path: str
    steps: int
    minutes: float
    metric: str
    best: float
    best_step: int
    signature: str
    reason: str = ""

    @property
    def digits(self) -> str:
        """Format specification of the best value, which depends on the metric."""
        return f".{MONITORS[self.metric].digits}f"

    @property
    def score(self) -> str:
        """The best value as text, with the name of the metric."""
        if name := MONITORS[self.metric].score_name:
            return f"{name} = {self.best:.2f} at step {self.best_step} {self.signature}"
        return f"{self.metric} {self.best:{self.digits}} at step {self.best_step}"


def store_result(run: Run, result: TrainingResult, wait: int) -> None:
    """Writes a result to the run directory; `wait` counts the validations since the best one."""
    values = asdict(result)
    del values["path"]
    run.write_result({"result": values, "without_better": wait})


def load_result(run: Run) -> tuple[TrainingResult | None, int]:
    """Reads the result and `wait` of `store_result`; None and 0 if there is no usable result."""
    stored = run.read_result() or {}
    try:
        return TrainingResult(path=str(run.path), **stored["result"]), int(stored["without_better"])
    except (KeyError, TypeError):
        return None, 0
