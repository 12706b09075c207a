"""Runs that share the text of a directory made by `keras-seq prepare`."""

from __future__ import annotations

import stat
from typing import NamedTuple

from keras_seq.preparation.files import PairCounts
from keras_seq.preparation.prepared_corpora import check_corpora
from keras_seq.preparation.record import check_record, recorded_counts
from keras_seq.run import Run
from keras_seq.settings import SIDES, DataSettings, Settings, SettingsError
from keras_seq.storage import copy_tree, require_space, size_on_disk
from keras_seq.text import InputError, Notice

# Settings of the section `data` that may differ between runs with the same prepared text.
_OWN = {"prepared", "bucket_width"}


class SharedText(NamedTuple):
    """The settings of a run, merged with the settings of the prepared directory `base`, if any.

    `counts` is None if the training text has not been read.
    """

    settings: Settings
    counts: PairCounts | None
    base: Run | None


def with_prepared(settings: Settings, counts: PairCounts | None = None) -> SharedText:
    """Merges the text and vocabulary settings of `data.prepared`, if set, into the settings.

    `counts` are the counts of the run's own training text, if known. Raises InputError if the
    directory is not completely prepared, and SettingsError if the settings name other text or
    differ from the settings of the directory.
    """
    if settings.data.prepared is None:
        return SharedText(settings, counts, None)
    base = _open(settings.data.prepared)
    record = base.read_preparation() or {}
    if settings.training.from_run is not None:
        raise SettingsError(
            f"training.from_run: received {settings.training.from_run!r} with data.prepared "
            f"({base.path}), which has its own vocabulary: give the text instead"
        )
    if settings.task != base.settings.task:
        raise SettingsError(
            f"task: received {settings.task!r} with data.prepared ({base.path}), which was "
            f"prepared for {base.settings.task!r}: give --task {base.settings.task}, or prepare "
            "another directory"
        )
    _check_equal(settings, base, record)
    data = base.settings.data.model_copy(update={key: getattr(settings.data, key) for key in _OWN})
    if settings.training.guided_alignment and data.alignments is None:
        raise SettingsError(
            f"training.guided_alignment: received {settings.training.guided_alignment:g}, "
            f"expected 0 with data.prepared ({base.path}), which was prepared without alignments"
        )
    merged = settings.model_copy(update={"data": data, "tokenizer": base.settings.tokenizer})
    # Check the merged settings: the prepared text may be too long for the model, for example.
    Settings.from_dict(merged.to_dict(), where=f"{base.path}: ")
    return SharedText(merged, recorded_counts(record) or PairCounts(0, 0), base)


def _check_equal(settings: Settings, base: Run, record: dict[str, object]) -> None:
    """Refuses text and vocabulary settings of the user that differ from the prepared ones."""
    requested = record.get("asked_tokenizer")
    requested = requested if isinstance(requested, dict) else {}
    for section, names in (
        ("data", settings.data.model_fields_set & (set(DataSettings.model_fields) - _OWN)),
        ("tokenizer", settings.tokenizer.model_fields_set),
    ):
        for name in sorted(names):
            received = getattr(getattr(settings, section), name)
            prepared = getattr(getattr(base.settings, section), name)
            same = received == prepared
            if section == "tokenizer" and name in SIDES:
                same |= all(
                    getattr(prepared, key) == value for key, value in received if value is not None
                )
            elif section == "tokenizer":
                same |= received in (requested.get(name), "auto")
            if not same:
                raise SettingsError(
                    f"{section}.{name}: received {received!r} with data.prepared ({base.path}), "
                    f"which was prepared with {prepared!r}: leave it out, or prepare another "
                    "directory"
                )


def share_prepared(run: Run, base: Run, notice: Notice) -> None:
    """Copies the vocabulary and validation text of the prepared directory `base` into a run.

    Raises InputError, before token ids are copied, if a file of `base` has changed since it was
    prepared, or a model cannot be trained with its token ids.
    """
    check_record(base, since_prepared=True)
    run.save_vocabularies(*base.vocabularies)
    check_corpora(run, base.valid_directory)
    size = 0
    for path in base.valid_directory.iterdir():
        # `Run.open` has refused links, but the copy of a sparse file could still fill the disk.
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{path}: expected only the regular files of a corpus")
        if size_on_disk(status) < status.st_size:
            raise InputError(f"{path}: a sparse file: it has holes instead of token ids")
        size += status.st_size
    require_space(size, run.path, "the validation text")
    run.save_valid_lines(*base.valid_lines())
    copy_tree(base.valid_directory, run.valid_directory)
    notice(f"text and vocabulary are those of {base.path}, which must stay where it is")


def _open(path: str) -> Run:
    run = Run.open(path)
    if run.settings.data.prepared is not None:
        raise InputError(
            f"{path}: shares the text of {run.settings.data.prepared}: give that directory"
        )
    if run.read_preparation() is None:
        raise InputError(f"{path}: its preparation did not finish: run its command again")
    return run
