"""Files of a peer's script: `train.tsv`, `dev.tsv`, `test.tsv`, `seconds.json` and predictions.

The scripts run in environments without keras-seq, so this module needs Python only.
"""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Sequence

# After one training, a script predicts the answers for these files.
PREDICTED = ("dev", "test")


def read(work: pathlib.Path, part: str) -> list[list[str]]:
    """Reads the columns of each line of "train", "dev" or "test"."""
    text = (work / f"{part}.tsv").read_text("utf-8")
    return [line.split("\t") for line in text.split("\n")[:-1]]


def write_seconds(work: pathlib.Path) -> None:
    """Writes the processor time of this process so far: that of the training."""
    (work / "seconds.json").write_text(json.dumps(time.process_time()))


def write(work: pathlib.Path, part: str, lines: Sequence[str]) -> None:
    """Writes a predicted line for each line of "dev" or "test"."""
    text = "".join(f"{line}\n" for line in lines)
    (work / f"predicted-{part}.txt").write_text(text, encoding="utf-8", newline="\n")
