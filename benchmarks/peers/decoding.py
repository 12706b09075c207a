"""Decoding by keras-seq and by what a user would pick instead, turn by turn in one run.

    python benchmarks/peers/decoding.py --work ~/peers
    python benchmarks/peers/decoding.py --work ~/peers --only keras-seq ctranslate2 --greedy

Every model has the shape of `transformer-small` (3 + 3 layers, 256 units, 1,024 in feed-forward, 4
heads, a joint vocabulary of 8,000, embeddings tied), and every decoder writes exactly 15 tokens for
each sentence, so that all do the same work. The weights are fresh; CTranslate2 has keras-seq's.
keras-seq takes and gives text; the others are spared the tokenizing and given what they take:
pieces, or padded tensors of ids, made before the clock starts. Sentences of Multi30k's test text,
sorted by length, so that batches have next to no padding.

A batch of one is a call for each sentence, one after another. Every decoder has a process and, save
CTranslate2, the peers each have a Python environment, which are made in the folder `--work` at the
first run (5 GB, more where torch comes with CUDA). A peer that cannot be had or fails is skipped
with the reason. A first turn, for tracing and warming up, is not counted; it shows the lengths.
Processor time is a sentence's, of all threads of the decoder: where it stands still and the
sentences a second do not, something else was at work on the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import machine  # noqa: E402
import worker  # noqa: E402
from contestants import PEERS, Column, Contestant, SkippedError, trained  # noqa: E402

# Threads of OpenMP wait for more work with all their might, for up to 0.2 s.
PAUSE_SECONDS = 0.3


class Figures(NamedTuple):
    """Of one contestant, a value for every repetition."""

    rates: list[float]
    processor: list[float]


class Decoder:
    """The processes of a contestant, most have one; what they say on stderr goes to a log.

    Raises:
        SkippedError: One ended, or wrote other lengths than agreed.
    """

    def __init__(self, contestant: Contestant, size: int, log: pathlib.Path) -> None:
        self.name = contestant.name
        self.figures = Figures([], [])
        self._size = size
        self._log = log
        with log.open("w") as stream:
            self._processes = [
                subprocess.Popen(
                    contestant.command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stream,
                    text=True,
                    env={**os.environ, **contestant.environment},
                )
                for _ in range(contestant.processes)
            ]

    def versions(self) -> str:
        """What it runs on, once the model is loaded."""
        return self._answers()[0]

    def turn(self, texts: list[str], ids: list[list[int]], counted: bool) -> None:
        count = len(self._processes)
        batches = worker.batches(list(zip(texts, ids, strict=True)), self._size)
        for number, process in enumerate(self._processes):
            share = [pair for batch in batches[number::count] for pair in batch]
            request = {
                "texts": [text for text, _ in share],
                "ids": [row for _, row in share],
                "lengths": not counted,
            }
            process.stdin.write(json.dumps(request) + "\n")
        for process in self._processes:
            process.stdin.flush()
        answers = self._answers()
        if counted:
            processor = sum(answer["processor"] for answer in answers)
            self.figures.processor.append(1000 * processor / len(texts))
            self.figures.rates.append(len(texts) / max(answer["seconds"] for answer in answers))
            return
        for answer in answers:
            if answer["lengths"] not in ([worker.STEPS], []):
                raise SkippedError(f"wrote {answer['lengths']} tokens, expected {worker.STEPS}")

    def close(self) -> None:
        for process in self._processes:
            # One that ended has not read all that was written for it.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        for process in self._processes:
            process.wait()

    def _answers(self) -> list:
        lines = [process.stdout.readline() for process in self._processes]
        for line, process in zip(lines, self._processes, strict=True):
            if not line:
                raise SkippedError(f"its process ended with {process.wait()}; see {self._log}")
        return [json.loads(line) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for what is made")
    parser.add_argument("--only", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--lines", type=int, default=512, help="in batches of 32; of 1: an eighth")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--greedy", action="store_true", help="beam 1, batch 32, too")
    arguments = parser.parse_args()
    (arguments.work / "logs").mkdir(parents=True, exist_ok=True)
    print(machine.describe())
    try:
        texts, ids = sentences(arguments.work, arguments.lines)
    except SkippedError as reason:
        raise SystemExit(f"no run to decode with: {reason}") from None
    columns = [Column(5, 32), Column(5, 1), *([Column(1, 32)] if arguments.greedy else [])]
    for column in columns:
        step = 1 if column.size > 1 else 8
        print(
            f"\nbeam {column.beam}, batch {column.size}: {len(texts[::step])} sentences, "
            f"{sum(map(len, ids[::step])) / len(ids[::step]):.1f} pieces each on the average"
        )
        show(measure(arguments, column, texts[::step], ids[::step]))


def sentences(work: pathlib.Path, count: int) -> tuple[list[str], list[list[int]]]:
    """Texts and their ids, the longest first."""
    from keras_seq.run import Run
    from keras_seq.text import read_lines

    texts = list(read_lines(machine.multi30k() / "test_2016_flickr.en.gz"))[:count]
    rows = Run.open(trained(work)).source_tokenizer.encode(texts)
    order = sorted(range(len(texts)), key=lambda i: -len(rows[i]))
    return [texts[i] for i in order], [rows[i] for i in order]


def measure(
    arguments: argparse.Namespace, column: Column, texts: list[str], ids: list[list[int]]
) -> dict[str, Figures]:
    decoders: list[Decoder] = []
    try:
        for peer in arguments.only:
            try:
                contestants = list(PEERS[peer](arguments.work, column))
            except SkippedError as reason:
                print(f"  skipped: {peer}: {reason}")
                continue
            for contestant in contestants:
                log = (
                    arguments.work / "logs" / f"{re.sub('[^A-Za-z0-9]+', '-', contestant.name)}.log"
                )
                decoder = Decoder(contestant, column.size, log)
                decoders.append(decoder)
                with dropped(decoder, decoders):
                    print(f"  {decoder.name}: {decoder.versions()}", flush=True)
                    decoder.turn(texts, ids, counted=False)
        order = list(decoders)
        for turn in range(arguments.repeat):
            # Another goes first every time.
            first = turn % max(1, len(order))
            for decoder in order[first:] + order[:first]:
                if decoder in decoders:
                    time.sleep(PAUSE_SECONDS)
                    with dropped(decoder, decoders):
                        decoder.turn(texts, ids, counted=True)
    finally:
        for decoder in decoders:
            decoder.close()
    return {decoder.name: decoder.figures for decoder in decoders}


@contextlib.contextmanager
def dropped(decoder: Decoder, decoders: list[Decoder]) -> Iterator[None]:
    """Goes on without a decoder that fails, and says so."""
    try:
        yield
    except (SkippedError, BrokenPipeError) as reason:
        print(f"  skipped: {decoder.name}: {reason}")
        decoders.remove(decoder)
        decoder.close()


def show(found: dict[str, Figures]) -> None:
    """Every repetition, medians, and how many times as fast keras-seq is."""
    if not found:
        return
    medians = {name: statistics.median(figures.rates) for name, figures in found.items()}
    width = max(map(len, found))
    print(f"  {'':{width}}  median  processor  sentences/s, each repetition")
    for name, figures in found.items():
        rates = " ".join(f"{rate:.1f}" for rate in figures.rates)
        processor = statistics.median(figures.processor)
        print(f"  {name:{width}}  {medians[name]:6.1f}  {processor:6.1f} ms  {rates}")
    ours = [name for name in found if name.startswith("keras-seq")]
    peers = [name for name in found if name not in ours]
    if ours and peers:
        print(f"  times as fast are: {' | '.join(ours)}")
    for peer in peers if ours else []:
        ratios = "  ".join(f"{medians[name] / medians[peer]:.2f}" for name in ours)
        print(f"  {peer:{width}}  {ratios}")


if __name__ == "__main__":
    main()
