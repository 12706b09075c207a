"""The metrics of each task, and checks of what a user asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keras_seq.run import Run
from keras_seq.scoring import ALL_METRICS, are_entity_tags, bleu_tokenizer
from keras_seq.text import InputError, words_of

TASK_METRICS: Mapping[str, tuple[str, ...]] = {
    "translate": ALL_METRICS,
    "language-model": ("perplexity",),
    "classify": ("accuracy", "macro_f1"),
    "tag": ("entity_f1", "accuracy", "macro_f1"),
}


def evaluation_metrics(
    run: Run, asked: Sequence[str] = (), examples: Sequence[tuple[str, str]] = ()
) -> tuple[str, ...]:
    """The metrics to compute, in the order that they are printed.

    Args:
        run: An opened run.
        asked: Names of metrics; none for all that the task has. The one that chose the best
            checkpoint is then first.
        examples: The test set. Entities are scored only if its tags are of entities.

    Raises:
        InputError: If a metric cannot be computed for the task or the tags.
    """
    task = run.settings.task
    known = TASK_METRICS[task]
    for name in asked:
        if name not in known:
            raise InputError(
                f"metric {name!r}: expected one of {', '.join(known)}, because the task of "
                f"{run.path} is {task!r}"
            )
    if task == "tag" and not are_entity_tags(_tags(run, examples)):
        if "entity_f1" in asked:
            raise InputError(
                "metric 'entity_f1': the tags are not of entities: expected O, and B-, I-, E- or "
                "S- with a type"
            )
        known = tuple(name for name in known if name != "entity_f1")
    if asked:
        return tuple(dict.fromkeys(asked))
    first = _monitor(run)
    return tuple(sorted(known, key=lambda name: name != first))


def check_options(
    run: Run,
    *,
    tokenize: str | None = None,
    ensemble: Sequence[Any] = (),
    search: Mapping[str, Any] | None = None,
) -> None:
    """Refuses a task without metrics, and options that the task of a run does not have.

    Args:
        run: An opened run.
        tokenize: Tokenizer of BLEU.
        ensemble: Other runs.
        search: Settings of the search.

    Raises:
        InputError: An option of another task; a tokenizer that cannot be used.
        SettingsError: A setting of the search is unknown or out of bounds.
    """
    task = run.settings.task
    if task not in TASK_METRICS:
        raise InputError(
            f"{run.path}: a run of task {task!r} has no metric of a test set: compare texts with "
            "those that `keras-seq reconstruct` writes"
        )
    if tokenize is not None and task != "translate":
        raise InputError(f"tokenize: received {tokenize!r}, but task {task!r} has no BLEU")
    if ensemble and task in ("classify", "tag"):
        raise InputError(f"ensemble: a run of task {task!r} is evaluated alone")
    if search and task == "language-model":
        raise InputError(
            f"search.{next(iter(search))}: a language model is scored on given texts, so nothing "
            "is searched"
        )
    run.settings.with_search(search_of_one(search or {}) if task == "translate" else search or {})
    try:
        bleu_tokenizer(tokenize)
    except ValueError as error:
        raise InputError(f"tokenize: {error}") from None


def search_of_one(search: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a search for one translation of each line, which is what is scored."""
    return {**search, "n_best": 1}


def _monitor(run: Run) -> Any:
    """The metric that chose the best checkpoint, None if the training has not finished."""
    result = (run.read_result() or {}).get("result")
    return result.get("metric") if isinstance(result, dict) else None


def _tags(run: Run, examples: Sequence[tuple[str, str]]) -> set[str]:
    return {tag for _, tags in examples for tag in words_of(tags)} | set(run.labels.names)
