"""The runs of an ensemble."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from keras_seq.run.directory import Run
from keras_seq.run.vocabularies import are_equal
from keras_seq.text import InputError


def open_ensemble(
    run: Run,
    others: Sequence[str | os.PathLike[str]],
    which: str | int = "best",
    notice: Callable[[str], None] | None = None,
) -> list[Run]:
    """Returns the run and the other runs of an ensemble, which must have the same vocabularies.

    Raises InputError if a run does not have this checkpoint, or has other vocabularies.
    """
    runs = [run, *(Run.open(other, notice=notice) for other in others)]
    for other in runs[1:]:
        other.require_weights(which)
        if not are_equal(run.vocabularies, other.vocabularies):
            raise InputError(
                f"{other.path}: its vocabulary differs from that of {run.path}: train the runs of "
                "an ensemble on the same prepared text, with different seeds"
            )
    return runs
