"""The metrics to compute, and checks of the options that a user gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keras_seq.run import Run
from keras_seq.scoring import bleu_tokenizer
from keras_seq.settings import TASKS, metrics_of
from keras_seq.text import InputError


def evaluation_metrics(
    run: Run, requested: Sequence[str] = (), examples: Sequence[tuple[str, str]] = ()
) -> tuple[str, ...]:
    """Returns the metrics to compute, in printed order. Raises InputError for unsuitable metrics.

    The default is all metrics of the task that are not of plugins, and the metric that chose the
    best checkpoint, which comes first. Some metrics need special references, such as tags of
    entities.
    """
    task = TASKS[run.settings.task]
    known = metrics_of(task)
    for name in requested:
        if name not in known:
            raise InputError(
                f"metric {name!r}: expected one of {', '.join(known)}, because the task of "
                f"{run.path} is {task.name!r}"
            )
    refused = task.refused_metrics(run, [reference for _, reference in examples])
    for name in requested:
        if name in refused:
            raise InputError(f"metric {name!r}: {refused[name]}")
    if requested:
        return tuple(dict.fromkeys(requested))
    # The metric that chose the best checkpoint; None during the training.
    result = (run.read_result() or {}).get("result")
    first = result.get("metric") if isinstance(result, dict) else None
    # Metrics of plugins can be slow, or meant for other tasks.
    own = [name for name in known if name in task.metrics or name == first]
    possible = [name for name in own if name not in refused]
    return tuple(sorted(possible, key=lambda name: name != first))


def check_options(
    run: Run,
    *,
    tokenize: str | None = None,
    ensemble: Sequence[Any] = (),
    search: Mapping[str, Any] | None = None,
) -> None:
    """Rejects a run whose task has no metrics, and options that the task does not support.

    Raises InputError; or SettingsError if a setting of the search is unknown or out of bounds.
    """
    task = TASKS[run.settings.task]
    if not task.metrics:
        raise InputError(
            f"{run.path}: a run of task {task.name!r} has no metric of a test set: compare texts "
            "with those that `keras-seq reconstruct` writes"
        )
    if tokenize is not None and "bleu" not in task.metrics:
        raise InputError(f"tokenize: received {tokenize!r}, but task {task.name!r} has no BLEU")
    if ensemble and task.has_labels:
        raise InputError(f"ensemble: a run of task {task.name!r} is evaluated alone")
    if search and "perplexity" in task.metrics:
        raise InputError(
            f"search.{next(iter(search))}: a language model is scored on given texts, so nothing "
            "is searched"
        )
    run.settings.with_search(search or {})
    try:
        bleu_tokenizer(tokenize)
    except ValueError as error:
        raise InputError(f"tokenize: {error}") from None
