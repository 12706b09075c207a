"""What a training came to."""

from dataclasses import dataclass

from keras_seq.settings import MONITORS


@dataclass(frozen=True)
class TrainingResult:
    """What a training came to.

    Attributes:
        path: The run directory.
        steps: Updates made.
        minutes: Wall time, that of earlier processes included.
        metric: The value that decided which checkpoint is best, one of
            `keras_seq.settings.MONITORS`.
        best: Its value in the best validation.
        best_step: The update it was reached at.
        signature: The signature of a score of text, "" of anything else.
        reason: Why the metric was chosen, "" if the settings name it or the task has no other.
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
        """Format of the best value: shares and losses have more digits."""
        return f".{MONITORS[self.metric].digits}f"

    @property
    def score(self) -> str:
        """The best value with its name, as it is printed."""
        if name := MONITORS[self.metric].score_name:
            return f"{name} = {self.best:.2f} at step {self.best_step} {self.signature}"
        return f"{self.metric} {self.best:{self.digits}} at step {self.best_step}"
