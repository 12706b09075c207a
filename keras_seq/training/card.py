"""The model card of a run: its content, score and use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keras_seq.settings import MONITORS, TASKS, Settings

if TYPE_CHECKING:
    from keras_seq.training.result import TrainingResult


def model_card(
    settings: Settings, result: TrainingResult, parameters: int, start_step: int | None = None
) -> str:
    """Describes a run in Markdown; `start_step` is the update of the initial checkpoint, if any."""
    data = settings.data
    source = _names(data.text) or _names(data.pairs) or _names(data.labeled)
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

The settings are in `settings.toml`, the training curve is in `metrics.jsonl`, and sample outputs
from the training are in `samples.txt`.

```
keras-seq {TASKS[settings.task].usage.format(result.path)}
```
"""


def _names(files: str | list[str] | None) -> str | None:
    return ", ".join(files) if isinstance(files, list) else files
