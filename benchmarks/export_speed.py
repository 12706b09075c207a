"""Compares the translation speed of an export with `Translator`, in alternating turns.

    keras-seq export runs/ende served/ende
    keras-seq export runs/ende onnx/ende --format onnx
    python benchmarks/export_speed.py runs/ende served/ende --onnx onnx/ende --ctranslate2

One process runs `Translator`. Another runs the newest version of the export with TensorFlow's C
API, as a model server does, with one client and with one client per core. Others run an ONNX export
with `keras_seq.runtime`, and the run with CTranslate2. Batches have 32 lines, or `--batch-size`, of
Multi30k's validation text, sorted by length in tokens, as `Translator` sorts. An export to LiteRT
translates one line at a time.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import machine

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tests"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("base", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=512)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--onnx", type=pathlib.Path, help="an ONNX export of the run")
    parser.add_argument("--litert", type=pathlib.Path, help="an export of the run to LiteRT")
    parser.add_argument("--ctranslate2", action="store_true", help="also run CTranslate2")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments)
        return
    print(machine.describe())
    clients = os.cpu_count() or 1
    asked = [("translate", 1), ("export", 1), ("export", clients)]
    if arguments.onnx:
        asked += [("onnx", 1), ("onnx", clients)]
    if arguments.litert:
        asked.append(("litert", 1))
    if arguments.ctranslate2:
        asked.append(("ctranslate2", 1))
    workers = {
        name: subprocess.Popen(
            [sys.executable, *sys.argv, "--worker", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for name in dict.fromkeys(name for name, _ in asked)
    }
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
    expected = answers.pop("translate")
    for name, found in answers.items():
        same = sum(a == b for a, b in zip(expected, found, strict=True))
        print(f"{name}: {same} of {arguments.lines} translations are those of the run")
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
    batches = [
        lines[start : start + arguments.batch_size]
        for start in range(0, len(lines), arguments.batch_size)
    ]
    translate = translator(arguments)
    for line in sys.stdin:
        count = int(line)
        wall, cpu = time.perf_counter(), time.process_time()
        if arguments.worker in ("translate", "ctranslate2"):
            found = translate(lines)
        else:
            with ThreadPoolExecutor(count) as pool:
                found = [text for batch in pool.map(translate, batches) for text in batch]
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(json.dumps([wall, cpu, found]), flush=True)


def translator(arguments: argparse.Namespace) -> Callable[[list[str]], list[str]]:
    """Returns a function from lines, all or those of a batch, to their translations."""
    if arguments.worker == "translate":
        from keras_seq import Translator

        return Translator.load(arguments.run, batch_size=arguments.batch_size)
    if arguments.worker == "onnx":
        from keras_seq import runtime

        return runtime.load(arguments.onnx)
    if arguments.worker == "litert":
        from keras_seq import litert

        return litert.load(arguments.litert, threads=os.cpu_count())
    if arguments.worker == "ctranslate2":
        from keras_seq.serving import CTranslate2Translator

        return CTranslate2Translator.load(arguments.run, batch_size=arguments.batch_size)
    from serving_session import newest
    from stock_server import StockSession

    return StockSession(newest(arguments.base)).translate


if __name__ == "__main__":
    main()
