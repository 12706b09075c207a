"""Decides, before Keras is imported, if a run can be resumed or must be prepared."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from keras_seq.plugins import PluginError
from keras_seq.preparation.files import PairCounts, training_files, validation_files
from keras_seq.preparation.prepared_corpora import check_corpora
from keras_seq.preparation.preparing import Executor, check_schedule, create_prepared_run
from keras_seq.preparation.record import (
    TEXT_KEYS,
    check_record,
    recorded_counts,
    same_tokenizer,
    text_differences,
)
from keras_seq.preparation.sharing import SharedText, with_prepared
from keras_seq.preparation.units import with_units
from keras_seq.preparation.warm_start import keeps_vocabulary
from keras_seq.run import Run, check_new, is_run
from keras_seq.settings import Settings
from keras_seq.text import InputError, Notice

Resume = Literal["auto", "never", "require"]

# Settings that may change when a training resumes. All others affect the weights or the meaning
# of the scores.
_MAY_CHANGE = {
    # Settings that determine when to stop.
    "training.max_steps",
    "training.max_minutes",
    "training.max_epochs",
    "training.patience",
    "training.max_skipped",
    # Settings of validation and checkpoints, which do not affect the updates.
    "training.monitor",
    "training.validate_every",
    "training.checkpoint_every",
    "training.keep_checkpoints",
    "training.sample_count",
    # Follows from the other settings.
    "plugins",
    # Text files may move, because only their content matters.
    *(f"data.{name}" for name in TEXT_KEYS),
}
# Search settings of the finished model. Validation has its own beam size, which may not change,
# because scores of different searches cannot be compared.
_MAY_CHANGE_SECTION = "search."
_MAX_DIFFERENCES = 6


def check_directory(
    directory: str | os.PathLike[str], *, resume: Resume = "auto", overwrite: bool = False
) -> None:
    """Checks the arguments of `open_or_prepare`. Changes nothing.

    Raises InputError if the directory cannot be used.
    """
    if resume not in get_args(Resume):
        raise ValueError(f"resume must be one of {get_args(Resume)}, received {resume!r}")
    path = Path(directory)
    if overwrite and resume == "require":
        raise InputError("--resume require and --overwrite exclude each other: choose one")
    if resume == "require" and not is_run(path):
        raise InputError(f"{path}: no run to resume, which --resume require needs")
    if overwrite or resume == "never" or not is_run(path):
        check_new(path, overwrite=overwrite)


def find_run(directory: str | os.PathLike[str]) -> Run | None:
    """Opens the run in a directory that may be resumed; None if there is no valid run."""
    try:
        return Run.open(directory) if is_run(directory) else None
    except PluginError:
        raise
    except InputError:
        return None


def open_or_prepare(
    settings: Settings,
    directory: str | os.PathLike[str],
    *,
    resume: Resume = "auto",
    overwrite: bool = False,
    notice: Notice | None = None,
    counts: PairCounts | None = None,
    executor: Executor | None = None,
) -> Run:
    """Opens a run to resume its training, or prepares a new one.

    See `prepare_run` for the other arguments. A resumed run takes limits and intervals from
    `settings`. A preparation that was killed is repeated. Returns the run, locked for this process.

    Args:
        resume: `"auto"` resumes a run if there is one, `"never"` refuses a run, `"require"`
            refuses a directory without a checkpoint.

    Raises:
        InputError: If a file is invalid, the directory cannot be used, another process trains
            there, or the run has different settings or text; the message lists the differences.
    """
    path = Path(directory)
    check_directory(path, resume=resume, overwrite=overwrite)
    shared = with_prepared(settings, counts)
    if overwrite or not is_run(path):
        return create_prepared_run(shared, path, overwrite, notice, executor)
    run = Run.open(path, notice=notice)
    lock = run.lock()
    has_checkpoint = bool(run.checkpoints.steps)
    is_prepared = run.read_preparation() is not None
    if has_checkpoint and not is_prepared:
        raise InputError(
            f"{path}: has checkpoints, but no record of its text: train in another directory, or "
            "start again with --overwrite"
        )
    if resume == "require" and not has_checkpoint:
        raise InputError(f"{path}: no checkpoint to resume from, which --resume require needs")
    if not is_prepared:
        if notice:
            notice(f"{path}: its preparation did not finish and is repeated")
        return create_prepared_run(shared, path, True, notice, executor, lock)
    _resume(run, shared, notice)
    return run


def _resume(run: Run, shared: SharedText, notice: Notice | None) -> None:
    """Updates the settings that may change, and refuses other differences."""
    settings = shared.settings
    if shared.base is not None:
        check_record(shared.base, since_prepared=True)
    else:
        training_files(settings.data, settings.task)
        validation_files(settings.data, settings.task)
    check_schedule(settings)
    record = check_record(run)
    settings = _with_stored_choices(settings, run, record)
    was, now = (dict(_flatten("", each.to_dict())) for each in (run.settings, settings))
    changed = {
        key: f"{key} {was.get(key, 'none')} -> {now.get(key, 'none')}"
        for key in {**was, **now}
        if was.get(key) != now.get(key)
    }
    has_checkpoint = bool(run.checkpoints.steps)
    differences = [line for key, line in changed.items() if not _may_change(key, has_checkpoint)]
    differences += text_differences(record, settings.data)
    if differences:
        count = len(differences) - _MAX_DIFFERENCES
        more = f" and {count} more" if count > 0 else ""
        raise InputError(
            f"{run.path}: this run was started with different settings: "
            f"{'; '.join(differences[:_MAX_DIFFERENCES])}{more}: use the original settings, train "
            "in another directory, or start again with --overwrite"
        )
    check_corpora(run)
    for key, line in changed.items():
        if notice and not key.startswith("data."):
            notice(f"setting changed: {line}")
    moved = changed.keys() & {"training.max_steps", "training.max_epochs"}
    if notice and moved and has_checkpoint and settings.training.schedule == "cosine":
        notice(
            "the learning rate now falls to 0 at the new end; the weights will not be those of a "
            "training that had this end from the beginning"
        )
    if changed:
        run.update_settings(settings)


def _with_stored_choices(settings: Settings, run: Run, record: Mapping[str, Any]) -> Settings:
    """Replaces automatic values in the settings with the values chosen for the run."""
    update: dict[str, Any] = {}
    if keeps_vocabulary(settings):
        update["tokenizer"] = run.settings.tokenizer
    elif settings.data.prepared is None:
        counts = recorded_counts(record)
        settings = with_units(settings, counts) if counts else settings
        if same_tokenizer(settings.tokenizer, record, run.settings.tokenizer):
            update["tokenizer"] = run.settings.tokenizer
    if settings.data.sample_rate is None:
        update["data"] = settings.data.model_copy(
            update={"sample_rate": run.settings.data.sample_rate}
        )
    if settings.training.precision == "auto":
        # Keep the precision even if this device would choose another.
        update["training"] = settings.training.model_copy(
            update={"precision": run.settings.training.precision}
        )
    return settings.model_copy(update=update)


def _flatten(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flatten(f"{prefix}{name}.", value)
        else:
            yield f"{prefix}{name}", value


def _may_change(key: str, has_checkpoint: bool) -> bool:
    """Tests if a setting may change when a training resumes."""
    if key in _MAY_CHANGE or key.startswith(_MAY_CHANGE_SECTION):
        return True
    # Only these training settings change the prepared data.
    prepared = key.startswith("training.from_") or key.endswith(("_embeddings", "training.teacher"))
    return not has_checkpoint and key.startswith("training.") and not prepared
