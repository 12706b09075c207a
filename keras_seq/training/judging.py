"""The monitored metric of a translation run, and the metrics reported with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from keras_seq.scoring import (
    Score,
    bleu,
    bleu_tokenizer,
    choose_bleu_tokenizer,
    choose_metric,
    score,
)
from keras_seq.settings import MONITORS, TEXT_MONITORS, Settings
from keras_seq.text import InputError

# Maps a monitor from the settings to the metric that is reported in addition.
_COMPANIONS = dict(exact="cer", cer="exact", wer="exact", chrf="bleu", bleu="chrf", ter="bleu")
# A model with this token accuracy under teacher forcing has learned something, so a score at
# its worst value is suspicious.
_HIGH_ACCURACY = 0.9


@dataclass(frozen=True)
class Judging:
    """The metrics of a validation of translations. `monitor` selects the best checkpoint.

    `metrics` are the text metrics, starting with the monitor if it is a text metric. `tokenize` is
    the tokenizer of BLEU. The reasons explain the choices of `auto`, and are "" if the settings
    name the choice.
    """

    monitor: str
    metrics: tuple[str, str]
    tokenize: str
    reason: str = ""
    tokenize_reason: str = ""

    @property
    def tie_break(self) -> str | None:
        """The error rate that breaks ties if the monitor is the rate of exact matches."""
        return self.metrics[1] if self.monitor == "exact" else None

    def scores(self, hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, Score]:
        """The metrics of text by name."""
        return {name: self._score(name, hypotheses, references) for name in self.metrics}

    def notices(self) -> list[str]:
        """Lines for the user at the start of a training."""
        because = f": {self.reason}" if self.reason else ""
        lines = [f"judged by {MONITORS[self.monitor].label}{because} (training.monitor)"]
        if (why := self.tokenize_reason) and "bleu" in self.metrics:
            lines.append(f"BLEU with tokenizer {self.tokenize}: {why} (score.tokenize)")
        return lines

    def contradiction(self, results: Mapping[str, float]) -> str | None:
        """A warning if the accuracy is high but the monitored value is its worst possible one."""
        monitor, accuracy = MONITORS[self.monitor], results["accuracy"]
        if accuracy < _HIGH_ACCURACY or not monitor.is_worst(results[self.monitor]):
            return None
        other = "loss" if self.monitor == "exact" else "exact"
        return (
            f"{monitor.label} is {results[self.monitor]:.2f}, but the token accuracy is "
            f"{accuracy:.3f}: this score may not fit the text; --set training.monitor={other} "
            f"judges by {MONITORS[other].label}"
        )

    def _score(self, name: str, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
        if name == "bleu":
            return bleu(hypotheses, [references], tokenize=self.tokenize)
        (result,) = score(hypotheses, [references], metrics=[name])
        return result


def judging_of(
    settings: Settings, references: Sequence[str], resumed_monitor: str | None = None
) -> Judging:
    """Chooses the metrics of a run's validations.

    `auto` keeps the monitor of the checkpoint that the training resumes from, because values of
    another metric cannot be compared with the best so far. Raises InputError if the tokenizer of
    BLEU needs a package or a file that is missing.
    """
    choice = choose_metric(references)
    monitor: str = settings.training.monitor
    reason = ""
    if monitor == "auto":
        monitor = resumed_monitor or choice.metric
        same = monitor == choice.metric
        reason = choice.reason if same else "as in the training before it was resumed"
    first = monitor if monitor in TEXT_MONITORS else choice.metric
    second = choice.companion if first == choice.metric else _COMPANIONS[first]
    tokenize: str = settings.score.tokenize
    tokenize_reason = ""
    if tokenize == "auto":
        tokenize = choose_bleu_tokenizer(references)
        if tokenize != "13a":
            tokenize_reason = "the validation references have no spaces between words"
    try:
        bleu_tokenizer(tokenize)
    except ValueError as error:
        raise InputError(f"score.tokenize: {error}") from None
    return Judging(monitor, (first, second), tokenize, reason, tokenize_reason)
