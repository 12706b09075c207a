"""Lists the parameters of each row as text, so that a diff shows renamed or reshaped weights.

After a change that is meant, write the files anew, all of them or those of some public names, and
read the diff:

    PYTHONPATH=tests python -m conformance.golden [NAME ...]
"""

import sys
from pathlib import Path
from typing import Any

from conformance.harness import build
from conformance.table import ROWS

FOLDER = Path(__file__).parent / "golden"


def parameter_tree(layer: Any) -> str:
    """Returns a line for each weight, in order: path, shape, dtype, and if it is trained."""
    lines = []
    for weight in layer.weights:
        trained = "" if weight.trainable else "  frozen"
        lines.append(f"{weight.path}  {tuple(weight.shape)}  {weight.dtype}{trained}\n")
    return "".join(lines)


def main(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.txt"):
        if not names or old.stem.split("-")[0] in names:
            old.unlink()
    for row in ROWS:
        if names and row.public_name not in names:
            continue
        (FOLDER / f"{row.name}.txt").write_text(parameter_tree(build(row)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
