"""Proof that an export answers what the run answers, in a process that knows nothing of either."""

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

Feeds = dict[str, list[Any]]
_SCRIPT = Path(__file__).with_name("stock_process.py")


def verify_saved_model(
    version: Path,
    sources: Sequence[str],
    expected: Sequence[str],
    *,
    batch_size: int,
    feeds: Callable[[Sequence[str]], Feeds] | None = None,
    decode: Callable[[list[Any]], list[str]] | None = None,
) -> float:
    """Runs a SavedModel in a fresh process and compares what it answers.

    The process has TensorFlow and tensorflow-text only, and loads the model
    into a session as a model server does.

    Args:
        version: Directory with `saved_model.pb`.
        sources: Texts to translate, to label, or to go on from.
        expected: The answer to each, to be met to the letter.
        batch_size: Texts at a time.
        feeds: Turns texts into what the signature takes, by the names of its inputs, where it
            has no operations on text.
        decode: Turns what comes out then into answers.

    Returns:
        The seconds that loading took.

    Raises:
        InputError: The export cannot be run, or answers anything else.
    """
    _check_operations(version, ALLOWED if feeds is None else ALLOWED - TEXT)
    starts = range(0, len(sources), batch_size)
    rows = [list(sources[start : start + batch_size]) for start in starts]
    batches = [{"text": texts} if feeds is None else feeds(texts) for texts in rows]
    answer = _run({"model": str(version), "text": feeds is None, "batches": batches})
    found = [one for batch in answer["answers"] for one in batch]
    _compare(sources, found if decode is None else decode(found), expected)
    return float(answer["load_seconds"])


def _check_operations(version: Path, allowed: frozenset[str]) -> None:
    if forbidden := operations(version) - allowed:
        raise InputError(
            "the export needs operations that a stock model server may not have: "
            + ", ".join(sorted(forbidden))
        )


def _compare(sources: Sequence[str], found: Sequence[str], expected: Sequence[str]) -> None:
    wrong = [
        number
        for number, pair in enumerate(zip(found, expected, strict=True))
        if pair[0] != pair[1]
    ]
    if wrong:
        first = wrong[0]
        raise InputError(
            f"the export answers {len(wrong)} of {len(sources)} sentences differently, the first "
            f"is {sources[first]!r}: {found[first]!r} in place of {expected[first]!r}"
        )


def _run(request: dict) -> dict:
    # -P: the folder of the script is not a place to import from. Settings of Keras are not its own.
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    result = subprocess.run(
        [sys.executable, "-P", str(_SCRIPT)],
        input=json.dumps(request),
        capture_output=True,
        encoding="utf-8",
        env=environment,
        check=False,
    )
    if result.returncode:
        said = [line for line in result.stderr.splitlines() if line.strip()] or ["no message"]
        raise InputError(
            f"the export does not run by itself (exit code {result.returncode}): {said[-1][:500]}"
        )
    return json.loads(result.stdout)
