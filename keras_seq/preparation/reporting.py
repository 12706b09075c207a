"""Messages for the user about an encoded corpus."""

from __future__ import annotations

from collections.abc import Sequence

from keras_seq.data import CorpusCounts
from keras_seq.preparation.encoding import Encoded
from keras_seq.settings import TASKS, Settings
from keras_seq.text import Example, InputError, Labels, Notice, PairFiles, words_of


def report(
    name: str, counts: CorpusCounts, settings: Settings, files: PairFiles, notice: Notice
) -> None:
    """Reports the kept and dropped pairs of a data set. Raises InputError if none is kept."""
    data, unit = settings.data, files.unit
    if data.packed:
        unit = "piece"
    elif TASKS[settings.task].reads_sounds:
        unit = "recording"
    total = counts.kept + counts.dropped_empty + counts.dropped_long + counts.dropped_weightless
    dropped = []
    if counts.dropped_empty:
        side = " with an empty side"
        if TASKS[settings.task].reads_sounds:
            side = f" without text, silent or longer than {data.max_seconds:g} seconds"
            side += " (data.max_seconds)"
        elif files.has_lines or files.is_labeled:
            side = " without text" if files.has_lines else " without text or label"
        dropped.append(f"{counts.dropped_empty:,}{side}")
    if counts.dropped_long and TASKS[settings.task].reads_sounds:
        dropped.append(
            f"{counts.dropped_long:,} longer than {data.max_target_length:,} tokens "
            "(data.max_target_length)"
        )
    elif counts.dropped_long:
        if files.is_labeled:
            keys = ["max_source_length"]
        elif files.has_lines:
            keys = ["max_target_length"]
        else:
            keys = ["max_source_length", "max_target_length"]
        limits = " or ".join(f"{getattr(data, key):,}" for key in keys)
        names = ", ".join(f"data.{key}" for key in keys)
        dropped.append(f"{counts.dropped_long:,} longer than {limits} tokens ({names})")
    if counts.dropped_weightless:
        dropped.append(f"{counts.dropped_weightless:,} of weight 0")
    why = f"; dropped {' and '.join(dropped)}" if dropped else ""
    if not counts.kept:
        raise InputError(f"{files}: no {name} {unit} of {total:,} is left{why}")
    notice(f"{name}: {counts.kept:,} of {total:,} {unit}s kept{why}")


class EncodingReport:
    """Counts the word links and the training targets that encoding cannot represent."""

    def __init__(self) -> None:
        self._lost = self._linked = self._broken = 0
        self._example: tuple[str, str] | None = None

    def add(self, encoded: Encoded) -> None:
        self._lost += encoded.lost
        self._linked += encoded.linked
        self._broken += encoded.broken
        self._example = self._example or encoded.example

    def report(self, notice: Notice) -> None:
        """Calls `notice` with a line for each kind of loss."""
        if self._example is not None:
            target, decoded = map(_shortened, self._example)
            verb = "target changes" if self._lost == 1 else "targets change"
            notice(
                f"{self._lost:,} training {verb} when encoded and decoded, so the model cannot "
                f"produce the original text: {target} becomes {decoded} "
                "(tokenizer.normalization, tokenizer.lowercase)"
            )
        if self._broken:
            notice(
                f"alignments: {self._broken:,} of {self._linked:,} pairs have links to words that "
                "leave no tokens; these links are dropped"
            )


def _shortened(text: str) -> str:
    quoted = repr(text)
    return quoted if len(quoted) <= 100 else quoted[:97] + "..."


def report_unknown_labels(
    valid: Sequence[Example], labels: Labels, notice: Notice, *, tagged: bool
) -> None:
    """Reports validation lines with labels or tags that the training text does not have."""
    known = {*labels.names, ""}
    unknown = [
        missing
        for pair in valid
        if (missing := {*(words_of(pair.target) if tagged else [pair.target])} - known)
    ]
    if unknown:
        names = sorted(set().union(*unknown))
        listed = ", ".join(name[:40] for name in names[:5]) + (", ..." if len(names) > 5 else "")
        notice(
            f"validation: {len(unknown):,} of {len(valid):,} lines have labels that the training "
            f"text does not have ({listed}): they count as wrong, and not in the loss"
        )
