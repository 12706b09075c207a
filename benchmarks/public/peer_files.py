"""Files of a peer's script: `train.tsv`, `dev.tsv`, `test.tsv` and `predicted.txt`.

The scripts run in environments without keras-seq, so this module needs Python only.
"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence


def read(work: pathlib.Path, part: str) -> list[list[str]]:
    """Reads the columns of each line of "train", "dev" or "test"."""
    text = (work / f"{part}.tsv").read_text("utf-8")
    return [line.split("\t") for line in text.split("\n")[:-1]]


def write(work: pathlib.Path, lines: Sequence[str]) -> None:
    """Writes a predicted line for each line of the test file."""
    text = "".join(f"{line}\n" for line in lines)
    (work / "predicted.txt").write_text(text, encoding="utf-8", newline="\n")
