"""The result of a training and the model card of its run."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from keras_seq.run import Run
from keras_seq.run.stored_values import is_count, is_number, is_text
from keras_seq.settings import MONITORS, TASKS, Settings


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
    # The score of the best checkpoint.
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
    """Writes a result to the run directory. `wait` counts validations since the best result."""
    values = asdict(result)
    del values["path"]
    run.write_result({"result": values, "without_better": wait})


def load_result(run: Run) -> tuple[TrainingResult | None, int]:
    """Reads the result and `wait` of `store_result`; None and 0 if there is no usable result."""
    stored = run.read_result() or {}
    values, wait = stored.get("result"), stored.get("without_better")
    if not isinstance(values, dict) or not is_count(wait):
        return None, 0
    try:
        result = TrainingResult(path=str(run.path), **values)
    except TypeError:
        # A value is missing or unknown.
        return None, 0
    return (result, wait) if _is_valid(result) else (None, 0)


def _is_valid(result: TrainingResult) -> bool:
    """Tests the values of a stored result, which may come from elsewhere."""
    return (
        is_count(result.steps)
        and is_count(result.best_step)
        and is_number(result.minutes)
        and result.minutes >= 0
        and is_text(result.metric)
        and result.metric in MONITORS
        # A perplexity may be infinite.
        and (is_number(result.best) or result.best in (math.inf, -math.inf))
        and is_text(result.signature)
        and is_text(result.reason)
    )


def model_card(
    settings: Settings, result: TrainingResult, parameters: int, start_step: int | None = None
) -> str:
    """Describes a run in Markdown; `start_step` is the update of the initial checkpoint, if any."""
    data = settings.data
    source = _names(data.text or data.pairs or data.labeled)
    source = source or f"{_names(data.source)} -> {_names(data.target)}"
    base, start = settings.training.from_run, ""
    if base is not None:
        start = f", from the weights of `{base}`"
        start += f", step {start_step:,}" if start_step is not None else ""
    if settings.training.teacher is not None:
        start += f", with the teacher `{settings.training.teacher}`"
    score = f"validation {result.metric} | {result.best:{result.digits}}"
    if name := MONITORS[result.metric].score_name:
        score = f"validation {name} | {result.best:.2f}, signature `{result.signature}`"
    if result.reason:
        score += f" |\n| judged by {MONITORS[result.metric].label} | {result.reason}"
    decoding = ""
    if settings.task == "translate":
        decoding = f"\n| decoding in validation | beam {settings.training.validation_beam_size} |"
    return f"""# A keras-seq run

A {settings.model.family} of {parameters:,} parameters, trained on `{source}`{start}.

| | |
|---|---|
| {score} |
| at step | {result.best_step:,} of {result.steps:,} |
| minutes of training | {result.minutes:.1f} |{decoding}

The settings are in `settings.toml`, the training curve is in `metrics.jsonl`, and sample outputs
from the training are in `samples.txt`.

```
keras-seq {TASKS[settings.task].usage.format(result.path)}
```
"""


def _names(files: str | list[str] | None) -> str | None:
    return ", ".join(files) if isinstance(files, list) else files
