"""Tasks by name, and the settings that each task allows."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from keras_seq.plugins import added
from keras_seq.plugins.registry import WithPlugins, reserve
from keras_seq.settings.errors import choices, show
from keras_seq.text import PAIR, Roles, parse_columns


class TaskSpec:
    """The attributes of a task that the settings use; `keras_seq.tasks.Task` adds methods.

    Attributes:
        name: The value of the setting `task`.
        families: Families of models for the task, the default first. Plugins add others.
        file: The setting of the section `data` that names the training file.
        data: Settings of the section `data` that only this and a few other tasks allow.
        training: Settings of the section `training` that only this and a few other tasks allow.
        without: Settings that the task does not allow, and why.
        usage: The command that uses a run of the task, with `{}` for the run.
        has_labels: True if targets are labels instead of text.
        autoencoding: True if each line of `data.text` is its own source.
        reads_sounds: True if a source is the path of a recording.
        no_transcript: The message if no recording has text.
        recordings_per_batch: Recordings in a batch of a corpus that is not small.
        roles: Names of the two columns of a file in `data.columns`.
        monitors: Values of `training.monitor` that validation computes.
        metrics: Metrics of a test set; empty if the task has none.
        compares_texts: True if validation and evaluation compare texts or labels with references,
            so that metrics of plugins apply.
    """

    name: str
    families: tuple[str, ...] = ()
    usage: str
    file: str = "pairs"
    data: tuple[str, ...] = ()
    training: tuple[str, ...] = ()
    without: Mapping[str, str] = {}
    has_labels: bool = False
    autoencoding: bool = False
    reads_sounds: bool = False
    no_transcript: str = "no recording has text"
    recordings_per_batch: int = 32
    roles: Roles | None = None
    monitors: tuple[str, ...] = ("loss", "perplexity", "accuracy")
    metrics: tuple[str, ...] = ()
    compares_texts: bool = False

    @property
    def command(self) -> str:
        """The name of the command that uses a run."""
        return self.usage.split()[0]

    def transcript(self, target: str) -> str:
        """Returns the text of a target of a recording, of which the vocabulary is learned."""
        return target


class _OwnTasks(Mapping[str, Any]):
    """Tasks of keras_seq, imported at first use because their modules import the settings."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules

    def __getitem__(self, name: str) -> Any:
        return importlib.import_module(self._modules[name]).TASK

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


_OWN = _OwnTasks(
    {
        "translate": "keras_seq.tasks.translation",
        "language-model": "keras_seq.tasks.language_model",
        "classify": "keras_seq.tasks.classification",
        "tag": "keras_seq.tasks.tagging",
        "vae": "keras_seq.tasks.vae",
        "speech": "keras_seq.tasks.speech",
        "wake-word": "keras_seq.tasks.wake_word",
    }
)
TASKS: Mapping[str, Any] = WithPlugins("task", _OWN, lambda name, task: task)
reserve("task", _OWN)


def monitors_of(task: TaskSpec) -> tuple[str, ...]:
    """Returns the values of `training.monitor` for a task, with the metrics of plugins."""
    return (*task.monitors, *(added("metric") if task.compares_texts else ()))


def metrics_of(task: TaskSpec) -> tuple[str, ...]:
    """Returns the metrics of a test set for a task, with the metrics of plugins."""
    return (*task.metrics, *(added("metric") if task.compares_texts else ()))


def check_task_settings(name: str, settings: Any) -> None:
    """Raises ValueError if `settings` have a setting that the task `name` does not allow."""
    task = TASKS[name]
    for section in ("data", "training"):
        fields = getattr(settings, section)
        owned = {other: getattr(known, section) for other, known in TASKS.items()}
        for key in dict.fromkeys(key for keys in owned.values() for key in keys):
            value = getattr(fields, key)
            if key not in owned[name] and value != type(fields).model_fields[key].default:
                others = [other for other, keys in owned.items() if key in keys]
                raise ValueError(
                    f"{section}.{key}: received {value!r}, which is for task "
                    + " or ".join(map(repr, others))
                )
    if task.roles is not None and settings.data.columns is not None:
        _check_columns(settings.data, task.roles)
    known = ("auto", *monitors_of(task))
    if (monitor := settings.training.monitor) not in known:
        raise ValueError(
            f"training.monitor: received {monitor!r}, expected {choices(known)} with task {name!r}"
        )
    for dotted, reason in task.without.items():
        section, key = dotted.split(".")
        fields = getattr(settings, section)
        if getattr(fields, key) != type(fields).model_fields[key].default:
            raise ValueError(f"{dotted}: {reason} with task {name!r}")


def _check_columns(data: Any, roles: Roles) -> None:
    parse_columns(data.columns, roles)
    tables = (data.pairs, data.labeled, data.valid_pairs, data.valid_labeled, data.prepared)
    if tables == (None,) * len(tables):
        name = "pairs" if roles == PAIR else "labeled"
        raise ValueError(
            f"data.columns: received {show(data.columns)} without data.{name}, expected a "
            "file with these columns"
        )
