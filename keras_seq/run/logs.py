"""Logs of a training: metrics.jsonl and samples.txt of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_seq.run.stored_values import is_count, is_number, is_text
from keras_seq.settings import MONITORS
from keras_seq.storage import check_regular, open_to_append, reason
from keras_seq.text import read_lines

_NAMES = ("metrics.jsonl", "samples.txt")
# Bounds of the absolute values of fitted numbers; logits may have single precision.
_FITTED = (1e-30, 1e30)
# All other values of metrics.jsonl are numbers, or null for a number that is not finite.
_TEXTS = ("kind", "monitor", "signature")


class RunLogs:
    """The append-only logs of one run. Resuming truncates them to a checkpoint."""

    def __init__(self, path: Path, *, writable: bool = True) -> None:
        self.path = path
        self.writable = writable

    def append_metrics(self, values: Mapping[str, Any]) -> None:
        """Appends one line of JSON to metrics.jsonl."""
        self._append("metrics.jsonl", json.dumps(dict(values), ensure_ascii=False) + "\n")

    def validation_scores(self) -> dict[int, float]:
        """Reads the monitored value of each validation from metrics.jsonl, by step.

        Metrics for which lower is better are negated, so larger is always better.
        """

        def score(entry: dict[str, Any]) -> float:
            # The first version of the format always monitored BLEU and has no `monitor`.
            monitor = entry.get("monitor", "bleu")
            return (-1 if MONITORS[monitor].lower_is_better else 1) * float(entry[monitor])

        return self._by_validation(score)

    def validation_values(self, name: str) -> dict[int, float]:
        """Reads a value that validations fit, such as a temperature, from metrics.jsonl, by step.

        Left out are numbers that overflow when logits are divided by them or added to them.
        """
        values = self._by_validation(lambda entry: float(entry[name]))
        low, high = _FITTED
        return {step: x for step, x in values.items() if x == 0 or low <= abs(x) <= high}

    def entries(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yields the lines of metrics.jsonl of a kind, "training" or "validation".

        Lines that are not JSON or have no valid `step` are skipped, and values of the wrong kind
        are left out: `step` is an integer, `monitor` text, and the metrics are finite numbers or
        None.
        """
        path = check_regular(self.path / "metrics.jsonl")
        for line in read_lines(path) if path.exists() else ():
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if not isinstance(entry, dict) or entry.get("kind") != kind:
                continue
            if is_count(entry.get("step")):
                yield {name: value for name, value in entry.items() if _is_valid(name, value)}

    def _by_validation(self, read: Callable[[dict[str, Any]], float]) -> dict[int, float]:
        values: dict[int, float] = {}
        for entry in self.entries("validation"):
            try:
                values[entry["step"]] = read(entry)
            except (KeyError, TypeError):
                # Skips lines without the value, with None, or of an unknown monitor.
                continue
        return values

    def append_samples(self, text: str) -> None:
        """Appends text and a line feed to samples.txt."""
        self._append("samples.txt", text if text.endswith("\n") else text + "\n")

    def sizes(self) -> dict[str, int]:
        """Returns the current size of each log in bytes, for `truncate`."""
        paths = {name: self.path / name for name in _NAMES}
        return {name: path.stat().st_size if path.exists() else 0 for name, path in paths.items()}

    def truncate(self, sizes: Mapping[str, int]) -> None:
        """Cuts the logs back to the sizes that `sizes` returned earlier."""
        for name in _NAMES if self.writable else ():
            path = self.path / name
            if path.exists() and path.stat().st_size > sizes.get(name, 0):
                with open_to_append(path) as stream:
                    stream.truncate(sizes.get(name, 0))

    def _append(self, name: str, text: str) -> None:
        path = self.path / name
        if self.writable:
            try:
                with open_to_append(path) as stream:
                    stream.write(text.encode())
            except OSError as error:
                raise OSError(f"{path}: not written: {reason(error)}") from error


def _is_valid(name: str, value: Any) -> bool:
    return is_text(value) if name in _TEXTS else value is None or is_number(value)
