"""Measures the time from process start to the first translated sentence or first update."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from contest import begin, log_of
from contestants import Contestant, available
from corpus import corpus
from decoders import DECODERS, Column
from decoding import sentences
from environments import SkippedError
from runs import exported, exported_to_onnx, trained
from table import show
from trainers import contestants_of

ENGINES = ("tensorflow", "ctranslate2")


class Start(NamedTuple):
    """A process to start and its request: JSON, a line of text, or None if it needs none."""

    contestant: Contestant
    request: dict[str, Any] | str | None


def start_translating(arguments: argparse.Namespace, forms: int | None = None) -> None:
    """Prints the time to the first translation of each contestant."""
    starts = list(translating(arguments, forms))
    measure(arguments, "the first translated sentence, beam 5", starts)


def start_training(arguments: argparse.Namespace) -> None:
    """Prints the time to the first update of each contestant."""
    made = corpus(arguments.work)
    trainers = contestants_of(arguments.work, made.folder, "transformer", arguments.only)
    starts = [Start(one, {"batches": 1}) for one in available(trainers)]
    measure(arguments, "the first update of `transformer-small`", starts)


def translating(arguments: argparse.Namespace, forms: int | None) -> Iterator[Start]:
    """Yields `keras-seq translate` commands for keras-seq and its export, decoders for peers."""
    texts, ids = sentences(arguments.work, 1)
    if "keras-seq" in arguments.only:
        for engine in ENGINES[-forms:] if forms else ENGINES:
            options = [trained(arguments.work), texts[0], f"--engine={engine}"]
            yield command(f"keras-seq translate --engine {engine}", options)
    if "keras-seq-export" in arguments.only:
        yield command("keras-seq translate EXPORT", [exported(arguments.work, 5), texts[0]])
        onnx = exported_to_onnx(arguments.work, 5)
        yield command("keras-seq translate ONNX", [onnx, texts[0]])
        runtime = [sys.executable, str(onnx / "runtime.py")]
        yield Start(Contestant("runtime.py of ONNX", runtime, {}), texts[0])
    request = {"texts": texts, "ids": ids, "lengths": False}
    peers = [
        (name, lambda peer=peer: peer(arguments.work, Column(5, 1)))
        for name, peer in DECODERS.items()
        if name in arguments.only and name not in ("keras-seq", "keras-seq-export")
    ]
    # One contestant per peer, because threads do not affect the start.
    for one in available(peers, 1):
        yield Start(one, request)


def command(name: str, options: list[Any]) -> Start:
    """The command `keras-seq translate` with these options."""
    arguments = ["-m", "keras_seq", "translate", *map(str, options)]
    return Start(Contestant(name, [sys.executable, *arguments], {}), None)


def measure(arguments: argparse.Namespace, what: str, starts: list[Start]) -> None:
    """Starts all processes in turn and prints medians; the first round is not counted."""
    print(f"\nFrom the start of a process to {what}\n", flush=True)
    found: dict[str, list[tuple[float, float]]] = {}
    # The first round reads files from disk that later rounds find in memory.
    for number in range(arguments.repeat + 1):
        for one in list(starts):
            try:
                figures = once(arguments, one)
            except SkippedError as reason:
                print(f"  skipped: {one.contestant.name}: {reason}", flush=True)
                starts.remove(one)
                found.pop(one.contestant.name, None)
                continue
            if number:
                found.setdefault(one.contestant.name, []).append(figures)
    rows = []
    for name, each in found.items():
        seconds = [wall for wall, _ in each]
        rows.append(
            [
                name,
                f"{statistics.median(seconds):.2f}",
                f"{min(seconds):.2f}-{max(seconds):.2f}",
                f"{statistics.median(used for _, used in each):.2f}",
            ]
        )
    if rows:
        show(("", "seconds", "lowest-highest", "processor seconds, the end included"), rows)


def once(arguments: argparse.Namespace, one: Start) -> tuple[float, float]:
    """Seconds until the answer, and processor seconds of the entire process.

    Raises:
        SkippedError: The process failed or ended without an answer.
    """
    contestant, log = one.contestant, log_of(arguments.work, f"start {one.contestant.name}")
    # Contestants that read JSON print their versions before the answer.
    lines = 2 if isinstance(one.request, dict) else 1
    request = json.dumps(one.request) if lines == 2 else one.request
    with log.open("w") as stream:
        started = time.perf_counter()
        process = begin(contestant, stream)
        if request is not None:
            process.stdin.write(f"{request}\n")
        process.stdin.close()
        answers = [process.stdout.readline() for _ in range(lines)]
        seconds = time.perf_counter() - started
        process.stdout.read()
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or not answers[-1]:
        raise SkippedError(f"its process ended with {process.returncode}; see {log}")
    return seconds, usage.ru_utime + usage.ru_stime
