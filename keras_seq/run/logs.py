"""What a training tells while it goes on: metrics.jsonl and samples.txt of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_seq.settings import MONITORS
from keras_seq.storage import check_regular, open_to_append, reason
from keras_seq.text import read_lines

_NAMES = ("metrics.jsonl", "samples.txt")


class RunLogs:
    """The logs of one run, which only ever grow, but for what a killed training wrote.

    Args:
        path: The run's directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append_metrics(self, values: Mapping[str, Any]) -> None:
        """Appends one line of JSON to metrics.jsonl."""
        _append(self.path / "metrics.jsonl", json.dumps(dict(values), ensure_ascii=False) + "\n")

    def validation_scores(self) -> dict[int, float]:
        """The monitored value of each validation in metrics.jsonl, by step; larger is better.

        A value of which lower ones are better is negated. A line without a monitor is of the
        first version of the format, which monitored BLEU.
        """
        path = check_regular(self.path / "metrics.jsonl")
        scores: dict[int, float] = {}
        for line in read_lines(path) if path.exists() else ():
            try:
                entry = json.loads(line)
                if entry["kind"] == "validation":
                    monitor = entry.get("monitor", "bleu")
                    sign = -1 if MONITORS[monitor].lower_is_better else 1
                    scores[int(entry["step"])] = sign * float(entry[monitor])
            except (ValueError, KeyError, TypeError, RecursionError):
                # Whatever else stands there is no score.
                continue
        return scores

    def append_samples(self, text: str) -> None:
        """Appends to samples.txt, ending with a line end."""
        _append(self.path / "samples.txt", text if text.endswith("\n") else text + "\n")

    def sizes(self) -> dict[str, int]:
        """Bytes of metrics.jsonl and samples.txt by now, for `truncate`."""
        paths = {name: self.path / name for name in _NAMES}
        return {name: path.stat().st_size if path.exists() else 0 for name, path in paths.items()}

    def truncate(self, sizes: Mapping[str, int]) -> None:
        """Takes from the logs what was written after `sizes` gave these sizes."""
        for name in _NAMES:
            path = self.path / name
            if path.exists() and path.stat().st_size > sizes.get(name, 0):
                with open_to_append(path) as stream:
                    stream.truncate(sizes.get(name, 0))


def _append(path: Path, text: str) -> None:
    try:
        with open_to_append(path) as stream:
            stream.write(text.encode())
    except OSError as error:
        raise OSError(f"{path}: not written: {reason(error)}") from error
