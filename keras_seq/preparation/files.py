"""The files that a run is made from, and how many pairs they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from keras_seq.settings import TASKS, DataSettings
from keras_seq.text import InputError, LineCounter, LineStatistics, PairFiles

Notice = Callable[[str], None]


class PairCounts(NamedTuple):
    """Counts over the training files.

    Attributes:
        pairs: Pairs of lines.
        usable: Those with text and a weight above 0.
        source, target: Statistics of the usable lines of each side; None if they are not known.
    """

    pairs: int
    usable: int
    source: LineStatistics | None = None
    target: LineStatistics | None = None


def training_files(data: DataSettings, task: str = "translate") -> PairFiles:
    """The files to train on, checked to be given and readable."""
    if data.source is data.target is data.pairs is data.text is data.labelled is None:
        raise InputError(
            "no text to train on: give --source and --target, or --pairs; or --task "
            "language-model and --text; or --task classify, or tag, and --data"
        )
    files = PairFiles(
        source=data.source,
        target=data.target,
        pairs=data.pairs,
        text=data.text,
        data=data.labelled,
        tagged=task == "tag",
        columns=data.columns,
        autoencoding=TASKS[task].autoencoding,
        weights=data.weights,
        alignments=data.alignments,
        file_weights=data.file_weights,
    )
    files.check()
    return files


def validation_files(data: DataSettings, task: str = "translate") -> PairFiles | None:
    """The files to validate on, checked to be readable; None if none are given."""
    given = (data.valid_source, data.valid_target, data.valid_pairs, data.valid_text)
    if given == (None,) * 4 and data.valid_labelled is None:
        return None
    files = PairFiles(
        source=data.valid_source,
        target=data.valid_target,
        pairs=data.valid_pairs,
        text=data.valid_text,
        data=data.valid_labelled,
        tagged=task == "tag",
        columns=data.columns,
        autoencoding=TASKS[task].autoencoding,
        option="--valid-",
    )
    files.check()
    return files


def count_pairs(
    data: DataSettings, notice: Notice | None = None, task: str = "translate"
) -> PairCounts:
    """Reads all training text once, which finds what is wrong with it.

    Raises:
        InputError: An unreadable, ragged or wrongly encoded file, or no pair.
    """
    files = training_files(data, task)
    pairs = usable = 0
    source, target = LineCounter(), LineCounter()
    for example in files.read(notice):
        pairs += 1
        if example.usable:
            usable += 1
            source.add(example.source)
            target.add(example.target)
    if not pairs:
        raise InputError(f"{files}: empty, there is nothing to train on")
    if not usable:
        counting = " and a weight above 0" if files.has_weights else ""
        raise InputError(
            f"{files}: no {files.unit} has text{where(files)}{counting} ({pairs:,} {files.unit}s)"
        )
    return PairCounts(pairs, usable, source.statistics, target.statistics)


def where(files: PairFiles) -> str:
    """On which sides there must be text, in words."""
    if files.is_labelled:
        return " and a label"
    return "" if files.has_lines else " on both sides"
