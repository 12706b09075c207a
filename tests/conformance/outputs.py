"""Writes the outputs of rows on the current backend to an .npz file.

Arguments: the file, then the names of the rows; without names, every row.
"""

import sys
from collections.abc import Sequence

import numpy as np
from conformance.harness import outputs_of
from conformance.table import ROWS


def outputs_by_name(names: Sequence[str]) -> dict[str, np.ndarray]:
    return {
        f"{row.name} {index}": output
        for row in ROWS
        if row.name in names or not names
        for index, output in enumerate(outputs_of(row))
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **outputs_by_name(sys.argv[2:]))
