"""Measures `keras-seq prepare` on many pairs: pairs per second, memory, and resume after a kill.

    python benchmarks/preparing.py --pairs 10000000 --kill-at 60

Each pair joins two random training lines of Multi30k, so nearly all pairs differ. Files contain one
million pairs each. Memory is the sum over all processes of the command, sampled every second; pages
mapped by several processes count several times, so it is an upper bound. `--kill-at` ends all
processes with `kill -9` after this many seconds and runs the command again, which must resume.
"""

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine

FILE_PAIRS = 1_000_000
CHUNK = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--kill-at", type=float, help="seconds after the start")
    parser.add_argument("--work", type=Path, help="folder for the text; by default a temporary one")
    options = parser.parse_args()
    print(machine.describe())
    with tempfile.TemporaryDirectory(dir=options.work) as temporary:
        folder = Path(temporary)
        seconds = timed(lambda: write_text(folder, options.pairs))
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{options.pairs:,} pairs, {size / 1e9:.2f} GB of text, written in {seconds:.0f} s")
        command = [sys.executable, "-m", "keras_seq", "prepare", "run"]
        for side, language in (("source", "en"), ("target", "de")):
            data = machine.multi30k().resolve()
            command += [f"--{side}", f"train.*.{language}"]
            command += [f"--valid-{side}", str(data / f"val.{language}.gz")]
        command += ["--preset", "transformer-small", "--workers", str(options.workers)]
        if options.kill_at:
            report("until the kill", *watch(command, folder, options.kill_at), options.pairs)
        report("to the end", *watch(command, folder), options.pairs)


def write_text(folder: Path, pairs: int) -> None:
    from keras_seq.text import read_lines

    data = machine.multi30k()
    lines = [list(read_lines(data / f"train.{language}.gz")) for language in ("en", "de")]
    generator = random.Random(1)
    for number in range(-(-pairs // FILE_PAIRS)):
        left = min(FILE_PAIRS, pairs - number * FILE_PAIRS)
        with (
            open(folder / f"train.{number:03}.en", "w", encoding="utf-8") as source,
            open(folder / f"train.{number:03}.de", "w", encoding="utf-8") as target,
        ):
            while left:
                count = min(CHUNK, left)
                drawn = [
                    (generator.randrange(len(lines[0])), generator.randrange(len(lines[0])))
                    for _ in range(count)
                ]
                for side, file in zip(lines, (source, target), strict=True):
                    file.writelines(f"{side[i]} {side[j]}\n" for i, j in drawn)
                left -= count


def timed(call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def watch(
    command: list[str], folder: Path, kill_at: float | None = None
) -> tuple[float, list[float]]:
    """Runs the command; returns its time in seconds and its memory in MiB at every second."""
    begin, memory = time.perf_counter(), []
    # The command gets its own session, so that all its processes can be found and killed.
    process = subprocess.Popen(command, cwd=folder, start_new_session=True)
    while process.poll() is None:
        memory.append(resident(process.pid))
        if kill_at and time.perf_counter() - begin > kill_at:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        time.sleep(1)
    seconds = time.perf_counter() - begin
    if process.returncode and not kill_at:
        raise SystemExit(f"the command ended with {process.returncode}")
    return seconds, memory


def resident(session: int) -> float:
    """Memory of all processes of a session in MiB."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                total += int(fields[21])
        except OSError:
            # The process ended in the meantime.
            continue
    return total * os.sysconf("SC_PAGE_SIZE") / 2**20


def report(name: str, seconds: float, memory: list[float], pairs: int) -> None:
    quarter = max(1, len(memory) // 4)
    quarters = [max(memory[k * quarter : (k + 1) * quarter] or [0]) for k in range(4)]
    print(
        f"{name}: {seconds:.0f} s, {pairs / seconds:,.0f} pairs/s of all; memory: median "
        f"{statistics.median(memory):.0f} MiB, peak of each quarter "
        + " ".join(f"{peak:.0f}" for peak in quarters)
    )


if __name__ == "__main__":
    main()
