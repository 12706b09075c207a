"""What is said of a corpus that was written."""

from __future__ import annotations

from collections.abc import Sequence

from keras_seq.data import CorpusCounts
from keras_seq.preparation.encoding import Encoded
from keras_seq.preparation.files import Notice
from keras_seq.settings import Settings
from keras_seq.text import Example, InputError, Labels, PairFiles, words_of


def report(
    name: str, counts: CorpusCounts, settings: Settings, files: PairFiles, say: Notice
) -> None:
    data, unit = settings.data, files.unit
    if data.packed and name == "training":
        unit = "piece"
    total = counts.kept + counts.dropped_empty + counts.dropped_long + counts.dropped_weightless
    dropped = []
    if counts.dropped_empty:
        side = " with an empty side"
        if files.has_lines or files.is_labelled:
            side = " without text" if files.has_lines else " without text or label"
        dropped.append(f"{counts.dropped_empty:,}{side}")
    if counts.dropped_long:
        limits, keys = f"{data.max_target_length:,}", "data.max_target_length"
        if files.is_labelled:
            limits, keys = f"{data.max_source_length:,}", "data.max_source_length"
        elif not files.has_lines:
            limits, keys = (
                f"{data.max_source_length:,} or {limits}",
                f"data.max_source_length, {keys}",
            )
        dropped.append(f"{counts.dropped_long:,} longer than {limits} tokens ({keys})")
    if counts.dropped_weightless:
        dropped.append(f"{counts.dropped_weightless:,} of weight 0")
    why = f"; dropped {' and '.join(dropped)}" if dropped else ""
    if not counts.kept:
        raise InputError(f"{files}: no {name} {unit} of {total:,} is left{why}")
    say(f"{name}: {counts.kept:,} of {total:,} {unit}s kept{why}")


class LostTargets:
    """Counts training targets that do not survive encoding and decoding.

    Attributes:
        count: Their number.
    """

    def __init__(self) -> None:
        self.count = 0
        self._example: tuple[str, str] | None = None

    def add(self, encoded: Encoded) -> None:
        """Counts those of some encoded pairs."""
        self.count += encoded.lost
        self._example = self._example or encoded.example

    @property
    def text(self) -> str:
        """A line for the user, with the first of them."""
        line, back = (_shortened(text) for text in self._example or ("", ""))
        verb = "target changes" if self.count == 1 else "targets change"
        return (
            f"{self.count:,} training {verb} when encoded and decoded, and cannot be written by "
            f"the model: {line} becomes {back} (tokenizer.normalization, tokenizer.lowercase)"
        )


def _shortened(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 100 else shown[:97] + "..."


def report_unknown_labels(
    valid: Sequence[Example], labels: Labels, say: Notice, *, tagged: bool
) -> None:
    """Tells of lines to validate on whose label, or a tag of whose, is in no training text."""
    known = set(labels.names)
    unknown = [
        missing
        for pair in valid
        if (missing := {*(words_of(pair.target) if tagged else [pair.target])} - known - {""})
    ]
    if unknown:
        names = sorted(set().union(*unknown))
        shown = ", ".join(name[:40] for name in names[:5]) + (", ..." if len(names) > 5 else "")
        say(
            f"validation: {len(unknown):,} of {len(valid):,} lines have labels that the training "
            f"text does not have ({shown}): they count as wrong, and not in the loss"
        )
