"""Compares the speed of TensorFlow, JAX and torch on Multi30k: training, translation and start.

    python benchmarks/backends.py runs/ende
    python benchmarks/backends.py runs/ende --preset rnn-small --only tensorflow torch

Each backend has a process that keeps its models, and the processes take turns, so other load
affects all of them equally. Training is whole updates with the settings of `--preset`, in target
tokens per second without padding, on the same batches in each turn. Translation is beam 5 of `RUN`
on Multi30k's validation text, in sentences per second. The first turn, in which the programs are
compiled, is not counted. The start is the time of `keras-seq translate RUN "A dog runs."` in a new
process.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import machine
from table import digits, show

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
BACKENDS = ("tensorflow", "jax", "torch")
UPDATES = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run")
    parser.add_argument("--preset", default="transformer-small")
    parser.add_argument("--only", nargs="+", choices=BACKENDS, default=BACKENDS)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--lines", type=int, default=128)
    parser.add_argument("--single-lines", type=int, default=24)
    parser.add_argument("--prepared", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.prepared:
        work(arguments)
        return
    print(machine.describe())
    with tempfile.TemporaryDirectory() as folder:
        prepare(arguments.preset, f"{folder}/run")
        processes = {name: start(name, f"{folder}/run") for name in arguments.only}
        figures = {name: [] for name in processes}
        for turn in range(1 + arguments.repeat):
            for name, process in processes.items():
                process.stdin.write("turn\n")
                process.stdin.flush()
                answer = json.loads(process.stdout.readline())
                answer["start"] = seconds_to_translate(name, arguments.run)
                if turn:
                    figures[name].append(answer)
        for process in processes.values():
            process.communicate()
    columns = ("training", "batches of 32", "single sentences", "start")
    rows = [
        [name, *(shown([answer[column] for answer in answers]) for column in columns)]
        for name, answers in figures.items()
    ]
    print(f"{arguments.preset}, median (lowest-highest) of {arguments.repeat} turns\n")
    units = ("target tokens/s", "sentences/s", "sentences/s", "s")
    header = ("backend", *(f"{a}, {b}" for a, b in zip(columns, units, strict=True)))
    show(header, rows)


def prepare(preset: str, path: str) -> None:
    """Prepares a run on Multi30k for the trainings."""
    folder = machine.multi30k()
    files = {
        f"data.{prefix}{side}": str(folder / f"{split}.{language}.gz")
        for split, prefix in (("train", ""), ("val", "valid_"))
        for side, language in (("source", "en"), ("target", "de"))
    }
    from keras_seq.preparation import prepare_run
    from keras_seq.settings import load_settings

    prepare_run(load_settings(preset=preset, overrides=files), path)


def start(backend: str, prepared: str) -> subprocess.Popen:
    """Starts the process of a backend."""
    return subprocess.Popen(
        [sys.executable, *sys.argv, "--prepared", prepared],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "KERAS_BACKEND": backend},
    )


def work(arguments: argparse.Namespace) -> None:
    """Trains and translates, and prints the speeds, for each line of stdin."""
    from training_speed import Turn

    from keras_seq import Translator
    from keras_seq.process.threads import configure_training_threads
    from keras_seq.run import Run
    from keras_seq.text import read_lines

    configure_training_threads()
    training = Turn(Run.open(arguments.prepared))
    translators = {
        name: (Translator.load(arguments.run, beam_size=5, batch_size=size), count)
        for name, size, count in (
            ("batches of 32", 32, arguments.lines),
            ("single sentences", 1, arguments.single_lines),
        )
    }
    lines = list(read_lines(machine.multi30k() / "val.en.gz"))
    for _ in sys.stdin:
        # The same batches each time, because JAX compiles for each new shape.
        seconds, _, tokens = training.train(0, UPDATES)
        speeds = {"training": tokens / seconds}
        for name, (translator, count) in translators.items():
            begin = time.perf_counter()
            translator(lines[:count])
            speeds[name] = count / (time.perf_counter() - begin)
        print(json.dumps(speeds), flush=True)


def seconds_to_translate(backend: str, run: str) -> float:
    """Returns the time in which a new process translates one sentence."""
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "keras_seq", "translate", run, "A dog runs."],
        check=True,
        capture_output=True,
        env={**os.environ, "KERAS_BACKEND": backend},
    )
    return time.perf_counter() - begin


def shown(values: list[float]) -> str:
    middle, low, high = map(digits, (statistics.median(values), min(values), max(values)))
    return f"{middle} ({low}-{high})"


if __name__ == "__main__":
    main()
