"""Text files of a run, and the counts of their pairs."""

from __future__ import annotations

from typing import Any, NamedTuple

from keras_seq.settings import TASKS, DataSettings
from keras_seq.text import (
    Example,
    InputError,
    LineCounter,
    LineStatistics,
    Notice,
    PairFiles,
    source_of,
    split_language,
)


class PairCounts(NamedTuple):
    """Counts of the training text.

    `usable` counts pairs with text and a weight above 0. `source` and `target` are statistics of
    the usable lines of each side; None if unknown.
    """

    pairs: int
    usable: int
    source: LineStatistics | None = None
    target: LineStatistics | None = None


def training_files(data: DataSettings, task: str = "translate") -> PairFiles:
    """Returns the training files. Raises InputError without files or if one is not readable."""
    if data.source is data.target is data.pairs is data.text is data.labeled is None:
        raise InputError(
            "no text to train on: give --source and --target, or --pairs; or --task "
            "language-model and --text; or --task classify, or tag, and --labeled"
        )
    options = {key: getattr(data, key) for key in ("weights", "alignments", "file_weights")}
    return _pair_files(data, task, "", **options)


def validation_files(data: DataSettings, task: str = "translate") -> PairFiles | None:
    """Returns the validation files, or None. Raises InputError if a file is not readable."""
    names = (data.valid_source, data.valid_target, data.valid_pairs, data.valid_text)
    if names == (None,) * 4 and data.valid_labeled is None:
        return None
    return _pair_files(data, task, "valid_", option="--valid-")


def _pair_files(data: DataSettings, task: str, prefix: str, **options: Any) -> PairFiles:
    names = ("source", "target", "pairs", "text", "labeled")
    files = PairFiles(
        **{name: getattr(data, f"{prefix}{name}") for name in names},
        tagged=task == "tag",
        columns=data.columns,
        autoencoding=TASKS[task].autoencoding,
        **options,
    )
    files.check()
    return files


def count_pairs(
    data: DataSettings, notice: Notice | None = None, task: str = "translate"
) -> PairCounts:
    """Reads the training text once, checks it, and counts its pairs.

    Raises InputError if a file is unreadable, not UTF-8, or shorter than its counterpart, or no
    pair is usable.
    """
    files = training_files(data, task)
    pairs = usable = 0
    source, target = LineCounter(), LineCounter()
    for example in files.read(notice):
        pairs += 1
        if example.usable:
            usable += 1
            source.add(source_text(example, files))
            target.add(example.target)
    if not pairs:
        raise InputError(f"{files}: empty, there is nothing to train on")
    if not usable:
        counting = " and a weight above 0" if files.has_weights else ""
        raise InputError(
            f"{files}: no {files.unit} has text{required_sides(files)}{counting} "
            f"({pairs:,} {files.unit}s)"
        )
    return PairCounts(pairs, usable, source.statistics, target.statistics)


def source_text(example: Example, files: PairFiles) -> str:
    """Returns the source of a pair without its features and the tag of its target language."""
    if files.has_languages:
        return split_language(example.source)[1]
    return source_of(example.source) if files.has_features else example.source


def required_sides(files: PairFiles) -> str:
    """Returns the end of the message "no pair has text": the sides that must have text."""
    if files.is_labeled:
        return " and a label"
    return "" if files.has_lines else " on both sides"
