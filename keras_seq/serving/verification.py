"""Verification of an export against the outputs of the run, in a process without Keras."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keras_seq.serving.graph_file.operations import ALLOWED, TEXT, operations
from keras_seq.text import InputError

_SCRIPT = Path(__file__).with_name("stock_process.py")


def verify_saved_model(
    version: Path,
    sources: Sequence[str],
    expected: Sequence[str],
    *,
    batch_size: int,
    requests: Callable[[Sequence[str]], dict[str, list[Any]]] = lambda texts: {"text": [*texts]},
    encode: Callable[[Sequence[str]], dict[str, list[Any]]] | None = None,
    decode: Callable[[list[Any]], list[str]] | None = None,
) -> float:
    """Runs a SavedModel in a new process and compares the outputs with the expected outputs.

    The process imports only TensorFlow and tensorflow-text, and loads the model into a session as
    a model server does. `expected` contains the exact output for each of `sources`. `batch_size` is
    the number of texts per call. `requests` converts texts to inputs by name. For a
    signature without text operations, `encode` converts texts to inputs by name, and `decode`
    converts outputs to texts. Returns the load time in seconds. Raises InputError if the export
    cannot be run, or an output differs.
    """
    allowed = ALLOWED if encode is None else ALLOWED - TEXT
    if forbidden := operations(version) - allowed:
        raise InputError(
            "the export needs operations that a stock model server may not have: "
            + ", ".join(sorted(forbidden))
        )
    starts = range(0, len(sources), batch_size)
    texts = [list(sources[start : start + batch_size]) for start in starts]
    batches = [(requests if encode is None else encode)(batch) for batch in texts]
    response = _run({"model": str(version), "text": encode is None, "batches": batches})
    outputs = [output for batch in response["outputs"] for output in batch]
    require_equal(sources, outputs if decode is None else decode(outputs), expected)
    return float(response["load_seconds"])


def require_equal(sources: Sequence[str], outputs: Sequence[str], expected: Sequence[str]) -> None:
    """Raises InputError if the outputs of an export differ from the outputs of the run."""
    triples = zip(sources, outputs, expected, strict=True)
    wrong = [triple for triple in triples if triple[1] != triple[2]]
    if wrong:
        source, output, right = wrong[0]
        raise InputError(
            f"the export returns another output than the run for {len(wrong)} of {len(sources)} "
            f"inputs, first for {source!r}: received {output!r}, expected {right!r}"
        )


def _run(request: dict[str, Any]) -> Any:
    # -P keeps the directory of the script off the import path.
    result = subprocess.run(
        [sys.executable, "-P", str(_SCRIPT)],
        input=json.dumps(request),
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )
    if result.returncode:
        lines = [line for line in result.stderr.splitlines() if line.strip()] or ["no message"]
        raise InputError(
            f"the export does not run by itself (exit code {result.returncode}): {lines[-1][:500]}"
        )
    return json.loads(result.stdout)
