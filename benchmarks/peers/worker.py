"""What the process of every contestant does, in plain Python: requests in, figures out."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import pathlib
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


def serve(respond, *packages: str) -> None:
    """Answers requests, a line of JSON each, until there are no more.

    The first line written says which packages these are: the model is loaded. `respond` is called
    with each request and gives the figures of the answer, to which the most memory that this
    process ever had is added, "peak", in bytes.
    """
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    print(json.dumps(", ".join(versions)), file=answers, flush=True)
    for line in sys.stdin:
        figures = respond(json.loads(line)) | {"peak": _peak_bytes()}
        print(json.dumps(figures), file=answers, flush=True)


def serve_decoding(prepare, *packages: str) -> None:
    """Decodes what is asked for.

    `prepare` is called with a request's "texts" and "ids" and gives two functions: one that decodes
    them all, which is timed, and one that tells from its answer how many tokens each translation
    has.
    """

    def respond(request):
        decode, lengths = prepare(request["texts"], request["ids"])
        answer, figures = timed(decode)
        figures["lengths"] = sorted(set(lengths(answer))) if request["lengths"] else None
        return figures

    serve(respond, *packages)


def serve_training(train, *packages: str) -> None:
    """Trains on as many batches as are asked for; `train` gives how many target tokens they had."""

    def respond(request):
        tokens, figures = timed(lambda: train(request["batches"]))
        return figures | {"tokens": tokens}

    serve(respond, *packages)


def timed(function):
    """What a function gives, and its "seconds" and "processor" seconds, of all threads."""
    used, start = _processor_seconds(), time.perf_counter()
    answer = function()
    seconds = time.perf_counter() - start
    return answer, {"seconds": seconds, "processor": _processor_seconds() - used}


def _processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _peak_bytes() -> int:
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        # `ru_maxrss` begins with what the parent had when it made this process.
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
