"""The README of a run: what it is, how well it does, how to use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keras_seq.settings import MONITORS, TASKS, Settings

if TYPE_CHECKING:
    from keras_seq.training.result import TrainingResult


def model_card(
    settings: Settings, result: TrainingResult, parameters: int, start_step: int | None = None
) -> str:
    """Markdown that describes a run.

    Args:
        settings: Those of the run.
        result: What its training came to.
        parameters: Number of weights.
        start_step: Of the weights of another run, where the training began with these.
    """
    data = settings.data
    source = _names(data.text) or _names(data.pairs) or _names(data.labelled)
    source = source or f"{_names(data.source)} -> {_names(data.target)}"
    base, start = settings.training.from_run, ""
    if base is not None:
        start = f", from the weights of `{base}`"
        start += f", step {start_step:,}" if start_step is not None else ""
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

All settings are in `settings.toml`, the curve is in `metrics.jsonl`, what it made while it
learned is in `samples.txt`.

```
keras-seq {TASKS[settings.task].usage.format(result.path)}
```
"""


def _names(files: str | list[str] | None) -> str | None:
    return ", ".join(files) if isinstance(files, list) else files
