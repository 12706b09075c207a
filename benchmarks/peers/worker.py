"""What the process of every decoder does, with Python's own library: requests in, figures out."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import resource
import sys
import time

# Tokens written for each sentence, by every decoder.
STEPS = 15
# Ids of the vocabulary that all share.
PAD, UNK, BOS, EOS = range(4)
VOCABULARY = 8000


def parser() -> argparse.ArgumentParser:
    """The options that all decoders have."""
    made = argparse.ArgumentParser()
    made.add_argument("--beam", type=int, required=True)
    made.add_argument("--size", type=int, required=True, help="sentences in a batch")
    return made


def batches(rows: list, size: int) -> list[list]:
    """Rows in their order, so many at a time."""
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def padded(rows: list[list], fill) -> list[list]:
    """Rows of one width."""
    width = max(map(len, rows))
    return [[*row, *[fill] * (width - len(row))] for row in rows]


def serve(prepare, *packages: str) -> None:
    """Answers requests, a line of JSON each, until there are no more.

    The first line written says which packages these are: the model is loaded. `prepare` is
    called with a request's "texts" and "ids" and gives two functions: one that decodes them all,
    which is timed, and one that tells from its answer how many tokens each translation has.
    """
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    print(json.dumps(", ".join(versions)), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        decode, lengths = prepare(request["texts"], request["ids"])
        used, start = _processor_seconds(), time.perf_counter()
        answer = decode()
        figures = {
            "seconds": time.perf_counter() - start,
            "processor": _processor_seconds() - used,
            "lengths": sorted(set(lengths(answer))) if request["lengths"] else None,
        }
        print(json.dumps(figures), file=answers, flush=True)


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
