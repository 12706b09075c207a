"""Runs that share the text of another directory, made by `keras-seq prepare`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import NamedTuple

from keras_seq.preparation.files import PairCounts
from keras_seq.preparation.record import recorded_counts
from keras_seq.run import Run
from keras_seq.settings import SIDES, DataSettings, Settings, SettingsError
from keras_seq.storage import size_on_disk
from keras_seq.text import InputError

Notice = Callable[[str], None]

# What batches are made of is the run's own business.
_OWN = {"prepared", "bucket_width"}


class Shared(NamedTuple):
    """What a run has from a prepared directory.

    Attributes:
        settings: The run's, with those of the directory for text and vocabulary.
        counts: Of the training text.
    """

    settings: Settings
    counts: PairCounts


def with_prepared(settings: Settings) -> Shared:
    """Takes over how text was prepared that a run shares.

    Args:
        settings: With `data.prepared`.

    Raises:
        InputError: Nothing is prepared there.
        SettingsError: Text of its own, too, or another vocabulary or other limits than there.
    """
    base = _open(settings)
    record = base.read_preparation() or {}
    if settings.training.from_run is not None:
        raise SettingsError(
            f"training.from_run: received {settings.training.from_run!r} with data.prepared "
            f"({base.path}), which has a vocabulary of its own: give the text itself"
        )
    there = base.settings
    if settings.task != there.task:
        raise SettingsError(
            f"task: received {settings.task!r} with data.prepared ({base.path}), which was "
            f"prepared for {there.task!r}: give --task {there.task}, or prepare another directory"
        )
    fields = {"data": set(DataSettings.model_fields) - _OWN, "tokenizer": None}
    for section, names in fields.items():
        ours, theirs = getattr(settings, section), getattr(there, section)
        for name in sorted(
            ours.model_fields_set if names is None else ours.model_fields_set & names
        ):
            asked, has = getattr(ours, name), getattr(theirs, name)
            wanted = record.get("asked_tokenizer", {}).get(name)
            same = section == "tokenizer" and name not in SIDES and asked in (wanted, "auto")
            if section == "tokenizer" and name in SIDES:
                same = all(getattr(has, key) == value for key, value in asked if value is not None)
            if asked != has and not same:
                raise SettingsError(
                    f"{section}.{name}: received {asked!r} with data.prepared ({base.path}), which "
                    f"was prepared with {has!r}: leave it out, or prepare another directory"
                )
    own = {name: getattr(settings.data, name) for name in _OWN}
    data = there.data.model_copy(update=own)
    if settings.training.guided_alignment and data.alignments is None:
        raise SettingsError(
            f"training.guided_alignment: {base.path} was prepared without alignments to guide by"
        )
    counts = recorded_counts(record) or PairCounts(0, 0)
    shared = settings.model_copy(update={"data": data, "tokenizer": there.tokenizer})
    # What was prepared may be more than this model reads.
    Settings.from_dict(shared.to_dict(), where=f"{base.path}: ")
    return Shared(shared, counts)


def share_prepared(run: Run, notice: Notice | None = None) -> None:
    """Puts into a run what it does not share: the vocabulary, and what is validated on.

    Args:
        run: With `data.prepared` in its settings.
        notice: Called with a line for what is shared.
    """
    base = _open(run.settings)
    run.save_vocabularies(*base.vocabularies)
    run.save_valid_lines(*base.valid_lines())
    # There are no links: `Run.open` refused them. A sparse file would fill the disk.
    for path in base.valid_directory.iterdir():
        status = path.lstat()
        if size_on_disk(status) < status.st_size:
            raise InputError(f"{path}: a sparse file: it has holes instead of token ids")
    shutil.copytree(
        base.valid_directory, run.valid_directory, symlinks=True, copy_function=shutil.copyfile
    )
    if notice:
        notice(f"text and vocabulary of {base.path}, which stays where it is")


def _open(settings: Settings) -> Run:
    path = settings.data.prepared or ""
    run = Run.open(path)
    if run.settings.data.prepared is not None:
        raise InputError(f"{path}: shares the text of {run.settings.data.prepared}: name that")
    if run.read_preparation() is None:
        raise InputError(f"{path}: its preparation was not finished: give its command again")
    return run
