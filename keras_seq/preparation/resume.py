"""Whether a directory has a run to go on with, and whether what is asked for is still that run.

Reads settings and the record of the preparation only, so that a refusal comes
before Keras is imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from keras_seq.preparation.files import PairCounts, training_files, validation_files
from keras_seq.preparation.preparing import Labour, prepare_run
from keras_seq.preparation.record import (
    TEXT_KEYS,
    check_record,
    recorded_counts,
    same_tokenizer,
    text_differences,
    text_untouched,
)
from keras_seq.preparation.sharing import with_prepared
from keras_seq.preparation.units import with_units
from keras_seq.run import Run, check_new, is_run
from keras_seq.settings import PREFIX, DataSettings, Settings
from keras_seq.text import InputError

Resume = Literal["auto", "never", "require"]
Notice = Callable[[str], None]

# What a training that goes on may be told anew. All else decides the course of the weights or what
# the scores mean, so that a change of it is another training.
_MAY_CHANGE = {
    # When to stop: the updates before it are the same.
    "training.max_steps",
    "training.max_minutes",
    "training.max_epochs",
    "training.patience",
    "training.max_skipped",
    # How often to look and to save, what to keep and to show, and which value decides: the updates
    # are the same, though the best of other looks may be another.
    "training.monitor",
    "training.validate_every",
    "training.checkpoint_every",
    "training.keep_checkpoints",
    "training.sample_count",
}
# How the finished model is used. Validation has a beam of its own, which may not change, because
# the best score so far would be compared with those of another decoding.
_MAY_CHANGE_SECTION = "search."
_SHOWN = 6


def check_directory(
    directory: str | os.PathLike[str], *, resume: Resume = "auto", overwrite: bool = False
) -> None:
    """Refuses at once a directory where nothing can be begun or gone on with.

    Args:
        directory: Where the run is or shall be.
        resume: `"auto"`, `"never"` or `"require"`; see `open_or_prepare`.
        overwrite: Whether an earlier run there may be deleted.

    Raises:
        InputError: As said.
        ValueError: Another word for `resume`.
    """
    if resume not in get_args(Resume):
        raise ValueError(f"resume must be one of {get_args(Resume)}, received {resume!r}")
    path = Path(directory)
    if overwrite and resume == "require":
        raise InputError("--resume require and --overwrite exclude each other: choose one")
    if resume == "require" and not is_run(path):
        raise InputError(f"{path}: no run to go on with, as --resume require asks")
    if overwrite or resume == "never" or not is_run(path):
        check_new(path, overwrite=overwrite)


def known_counts(directory: str | os.PathLike[str], data: DataSettings) -> PairCounts | None:
    """The counts of the text from the run that is there, None if it must be read to know.

    Args:
        directory: Where the run may be.
        data: Names the text.
    """
    path = Path(directory)
    try:
        if not is_run(path):
            return None
        run = Run.open(path)
        record = run.read_preparation()
        # Other columns of the same file have other pairs.
        same = run.settings.data.columns == data.columns
        if record is None or not same or not text_untouched(record, data):
            return None
    except InputError:
        return None
    counts = recorded_counts(record)
    if counts is None or counts.source is None or counts.target is None:
        return None
    return counts


def known_initial_checkpoint(directory: str | os.PathLike[str], path: str) -> str | Path:
    """Where the settings of the run are that a training starts from.

    Args:
        directory: Where that training may have begun.
        path: The run that it names.

    Returns:
        The copy in `directory`, or `path` where there is none.
    """
    try:
        if is_run(Path(directory)):
            run = Run.open(directory)
            if run.settings.training.from_run == path and is_run(run.start_directory):
                return run.start_directory
    except InputError:
        pass
    return path


def known_preset(directory: str | os.PathLike[str], preset: str) -> Path | None:
    """Where the preset of KerasHub is that a training begins with, if it is known without asking.

    Args:
        directory: Where that training may have begun.
        preset: As of `--preset`.

    Returns:
        The copy in `directory`, None where there is none.
    """
    try:
        if preset.startswith(PREFIX) and is_run(Path(directory)):
            run = Run.open(directory)
            kept = run.pretrained_directory
            same = run.settings.training.from_hub == preset.removeprefix(PREFIX)
            # The copy is whole once the preparation is.
            if same and run.read_preparation() is not None and kept.is_dir():
                return kept
    except InputError:
        pass
    return None


def open_or_prepare(
    settings: Settings,
    directory: str | os.PathLike[str],
    *,
    resume: Resume = "auto",
    overwrite: bool = False,
    notice: Notice | None = None,
    counts: PairCounts | None = None,
    labour: Labour | None = None,
) -> Run:
    """The run to train: the one that is there if it is the same, else a new one.

    Of a run that is there, limits and intervals are taken from `settings`. A
    preparation that was killed is done again.

    Args:
        settings: With the training files in `settings.data`.
        directory: A new or empty directory, or a run.
        resume: `"auto"` goes on with a run and begins where there is none,
            `"never"` refuses a run, `"require"` refuses a directory without a
            checkpoint.
        overwrite: Whether an earlier run there is deleted.
        notice: Called with a line for each thing done.
        counts: What `count_pairs` said, if the text was read already.
        labour: As for `prepare_run`.

    Returns:
        The run, locked for this process.

    Raises:
        InputError: Wrong files, a directory that cannot be used or where another
            process trains, or a run of other settings or another text; the message
            has each difference.
    """
    path = Path(directory)
    check_directory(path, resume=resume, overwrite=overwrite)
    if settings.data.prepared is not None:
        settings = with_prepared(settings).settings
    if overwrite or not is_run(path):
        return prepare_run(
            settings, path, overwrite=overwrite, notice=notice, counts=counts, labour=labour
        )
    run = Run.open(path, notice=notice)
    lock = run.lock()
    if run.read_preparation() is None:
        if run.checkpoints.steps:
            raise InputError(
                f"{path}: has checkpoints, but not what its text was: train in another directory, "
                "or start again with --overwrite"
            )
        _require_checkpoint(run, resume)
        if notice:
            notice(f"{path}: its preparation was not finished, and is done again")
        return prepare_run(
            settings,
            path,
            overwrite=True,
            notice=notice,
            counts=counts,
            lock=lock,
            labour=labour,
        )
    _require_checkpoint(run, resume)
    _go_on(run, settings, notice)
    return run


def _require_checkpoint(run: Run, resume: Resume) -> None:
    if resume == "require" and not run.checkpoints.steps:
        raise InputError(f"{run.path}: no checkpoint to go on from, as --resume require asks")


def _go_on(run: Run, settings: Settings, notice: Notice | None) -> None:
    """Takes over what may change, refuses what may not."""
    if settings.data.prepared is not None:
        check_record(Run.open(settings.data.prepared))
    else:
        training_files(settings.data, settings.task)
        validation_files(settings.data, settings.task)
    record = check_record(run)
    training = settings.training
    if training.from_run is not None and training.from_run_vocabulary == "keep":
        settings = settings.model_copy(update={"tokenizer": run.settings.tokenizer})
    elif settings.data.prepared is None:
        counts = recorded_counts(record)
        settings = with_units(settings, counts) if counts else settings
        if same_tokenizer(settings.tokenizer, record, run.settings.tokenizer):
            settings = settings.model_copy(update={"tokenizer": run.settings.tokenizer})
    if settings.training.precision == "auto":
        # What was chosen when it began, maybe for another device.
        training = settings.training.model_copy(
            update={"precision": run.settings.training.precision}
        )
        settings = settings.model_copy(update={"training": training})
    was, now = _flat(run.settings), _flat(settings)
    changed = [key for key in {**was, **now} if was.get(key) != now.get(key)]
    begun = bool(run.checkpoints.steps)
    matter = [key for key in changed if not _may_change(key, begun=begun)]
    text = text_differences(record, settings.data)
    differences = [f"{key} {_show(was.get(key))} -> {_show(now.get(key))}" for key in matter] + text
    if differences:
        more = f" and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
        raise InputError(
            f"{run.path}: its training was begun otherwise: {'; '.join(differences[:_SHOWN])}"
            f"{more}: give what it was begun with, train in another directory, or start again "
            "with --overwrite"
        )
    for key in changed:
        if notice and not key.startswith("data."):
            notice(f"from here on {key} {_show(was.get(key))} -> {_show(now.get(key))}")
    if changed:
        run.update_settings(settings)


def _flat(settings: Settings) -> dict[str, Any]:
    return dict(_flattened("", settings.to_dict()))


def _flattened(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flattened(f"{prefix}{name}.", value)
        else:
            yield f"{prefix}{name}", value


def _may_change(key: str, *, begun: bool) -> bool:
    # Before the first checkpoint nothing was trained, and what was prepared depends on nothing of
    # how it is but on the weights to begin with, which were copied.
    free = not begun and key.startswith("training.") and not _is_of_the_start(key)
    return (
        free
        or key in _MAY_CHANGE
        or key.startswith(_MAY_CHANGE_SECTION)
        # Of text, the content decides and not its name.
        or key in {f"data.{name}" for name in TEXT_KEYS}
    )


def _is_of_the_start(key: str) -> bool:
    return key.startswith("training.from_") or key.endswith("_embeddings")


def _show(value: Any) -> str:
    return "none" if value is None else str(value)
