"""Request loop of all contestants, in plain Python: requests in, figures out."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import pathlib
import resource
import sys
import time

# Every decoder writes this many tokens per sentence.
STEPS = 15
# Special ids and size of the vocabulary that all contestants share.
PAD, UNK, BOS, EOS = range(4)
VOCABULARY = 8000


def parser() -> argparse.ArgumentParser:
    """Creates a parser with the options that all decoders share."""
    made = argparse.ArgumentParser()
    made.add_argument("--beam", type=int, required=True)
    made.add_argument("--size", type=int, required=True, help="sentences in a batch")
    return made


def batches(rows: list, size: int) -> list[list]:
    """Splits rows into batches of at most `size`, in order."""
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def padded(rows: list[list], fill) -> list[list]:
    """Pads all rows to the length of the longest."""
    width = max(map(len, rows))
    return [[*row, *[fill] * (width - len(row))] for row in rows]


def serve(respond, *packages: str) -> None:
    """Answers requests from stdin, one line of JSON each, until stdin ends.

    The first output line contains the versions of the packages and shows that the model is loaded.
    `respond` maps a request to the figures of its answer. "peak", the peak memory of this process
    in bytes, is added to the figures.
    """
    # Redirect output of libraries to stderr, so that stdout contains only answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    print(json.dumps(", ".join(versions)), file=answers, flush=True)
    for line in sys.stdin:
        figures = respond(json.loads(line)) | {"peak": _peak_bytes()}
        print(json.dumps(figures), file=answers, flush=True)


def serve_decoding(prepare, *packages: str) -> None:
    """Answers decoding requests.

    `prepare` takes the "texts" and "ids" of a request and returns two functions. The first decodes
    all of them and is timed. The second takes the result of the first and returns the number of
    tokens of each translation.
    """

    def respond(request):
        decode, lengths = prepare(request["texts"], request["ids"])
        answer, figures = timed(decode)
        figures["lengths"] = sorted(set(lengths(answer))) if request["lengths"] else None
        return figures

    serve(respond, *packages)


def serve_training(train, *packages: str) -> None:
    """Answers training requests; `train(batches)` returns the number of target tokens."""

    def respond(request):
        tokens, figures = timed(lambda: train(request["batches"]))
        return figures | {"tokens": tokens}

    serve(respond, *packages)


def timed(function):
    """Result of a function, with its "seconds" and the "processor" seconds of all threads."""
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
        # `ru_maxrss` would include memory of the parent at the time of the fork.
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
