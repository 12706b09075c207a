"""Compares the translation speed of an export with `Translator`, in alternating turns.

    keras-seq export runs/ende served/ende
    python benchmarks/export_speed.py runs/ende served/ende

One process runs `Translator`. Another runs the newest version of the export with TensorFlow's C
API, as a model server does, with one client and with one client per core. Batches have 32 lines of
Multi30k's validation text, sorted by length in tokens, as `Translator` sorts.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import machine

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

BATCH = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("base", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=512)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--worker", choices=["translate", "export"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments)
        return
    print(machine.describe())
    workers = {
        name: subprocess.Popen(
            [sys.executable, *sys.argv, "--worker", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for name in ("translate", "export")
    }
    clients = os.cpu_count() or 1
    asked = [("translate", 1), ("export", 1), ("export", clients)]
    rates: dict[tuple[str, int], list[tuple[float, float]]] = {one: [] for one in asked}
    answers = {}
    for turn in range(1 + arguments.repeat):
        for name, count in asked:
            process = workers[name]
            process.stdin.write(f"{count}\n")
            process.stdin.flush()
            wall, cpu, answers[name] = json.loads(process.stdout.readline())
            # The first turn traces and warms up.
            if turn:
                rates[name, count].append((arguments.lines / wall, arguments.lines / cpu))
    for (name, count), found in rates.items():
        by_wall, by_cpu = ([pair[i] for pair in found] for i in range(2))
        print(
            f"{name}, {count} at a time: sentences / s "
            + " ".join(f"{rate:.1f}" for rate in by_wall)
            + f", median {statistics.median(by_wall):.1f}; "
            + f"of processor time {statistics.median(by_cpu):.1f}"
        )
    same = sum(a == b for a, b in zip(answers["translate"], answers["export"], strict=True))
    print(f"{same} of {arguments.lines} translations are the same")
    for process in workers.values():
        process.stdin.close()
        process.wait()


def work(arguments: argparse.Namespace) -> None:
    """Translates all lines and prints the times, once per line of stdin."""
    from keras_seq.run import Run
    from keras_seq.text import read_lines

    lines = list(read_lines(machine.multi30k() / "val.en.gz"))[: arguments.lines]
    ids = Run.open(arguments.run).source_tokenizer.encode(lines)
    lines = [lines[i] for i in sorted(range(len(lines)), key=lambda i: -len(ids[i]))]
    if arguments.worker == "translate":
        from keras_seq import Translator

        translate = Translator.load(arguments.run, batch_size=BATCH)
    else:
        from serving_session import newest
        from stock_server import StockSession

        session = StockSession(newest(arguments.base))
    batches = [lines[start : start + BATCH] for start in range(0, len(lines), BATCH)]
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        if arguments.worker == "translate":
            found = translate(lines)
        else:
            with ThreadPoolExecutor(int(line)) as pool:
                found = [text for batch in pool.map(session.translate, batches) for text in batch]
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(json.dumps([wall, cpu, found]), flush=True)


if __name__ == "__main__":
    main()
