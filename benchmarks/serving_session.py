"""Measures an export as a model server runs it: speed, latency, threads and memory.

    keras-seq export runs/ende served/ende
    python benchmarks/serving_session.py served/ende

Runs the export with TensorFlow's C API in this process, without Python's TensorFlow, on Multi30k's
validation text. `--smoke` sends only a few requests, to test the script.
"""

import argparse
import os
import pathlib
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import machine

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

from stock_server import StockSession, Tensor

THREADS = 64
LONG = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("base", type=pathlib.Path, help="directory of versions, or one of them")
    parser.add_argument("--lines", type=int, default=512, help="sentences for the speeds")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--smoke", action="store_true")
    arguments = parser.parse_args()

    from keras_seq.text import read_lines

    version = newest(arguments.base)
    lines = list(read_lines(machine.multi30k() / "val.en.gz"))
    print(machine.describe())
    size = sum(file.stat().st_size for file in version.rglob("*") if file.is_file())
    before = resident()
    session = StockSession(version)
    print(
        f"{version.name}: {size / 1e6:.1f} MB; loaded in {session.load_seconds:.2f} s, "
        f"{resident() - before:.0f} MB of memory"
    )
    start = time.perf_counter()
    session.translate(lines[:32])
    print(f"first batch of 32: {time.perf_counter() - start:.2f} s")

    count, repeat = (64, 1) if arguments.smoke else (arguments.lines, arguments.repeat)
    speeds(session, lines[:count], 32, repeat)
    speeds(session, lines[: max(8, count // 8)], 1, repeat)
    threads(session, lines, 100 if arguments.smoke else 1_000)
    memory(session, lines, *((50, 200) if arguments.smoke else (1_000, 10_000)))
    long_texts(session, lines, 3 if arguments.smoke else 100)


def newest(base: pathlib.Path) -> pathlib.Path:
    """Returns `base` if it is a version, otherwise the newest version in `base`."""
    if (base / "saved_model.pb").exists():
        return base
    versions = [path for path in base.iterdir() if path.name.isdigit()] if base.is_dir() else []
    if not versions:
        raise SystemExit(f"{base}: no version there; write one with `keras-seq export`")
    return max(versions, key=lambda path: int(path.name))


def speeds(session: StockSession, lines: list[str], batch: int, repeat: int) -> None:
    """Prints the speed for lines in their order and for lines sorted by length."""
    for order, ordered in (
        ("as they come", lines),
        ("sorted", sorted(lines, key=len, reverse=True)),
    ):
        rates, processor = [], []
        for _ in range(repeat):
            wall, cpu = time.perf_counter(), time.process_time()
            for start in range(0, len(ordered), batch):
                session.translate(ordered[start : start + batch])
            rates.append(len(lines) / (time.perf_counter() - wall))
            processor.append(len(lines) / (time.process_time() - cpu))
        print(
            f"batch {batch:2}, {order}: sentences / s "
            + " ".join(f"{rate:.1f}" for rate in rates)
            + "; of processor time "
            + " ".join(f"{rate:.1f}" for rate in processor)
        )
        if batch == 1:
            # The order does not matter for single sentences.
            return


def threads(session: StockSession, lines: list[str], count: int) -> None:
    """Compares requests from many threads with the same requests in sequence."""
    requests = [lines[number % len(lines)] for number in range(count)]
    serial, seconds = timed(session, requests, 1)
    print(f"{count} requests, one after the other: {latencies(seconds)}")
    start = time.perf_counter()
    found, seconds = timed(session, requests, THREADS)
    rate = count / (time.perf_counter() - start)
    equal = sum(a == b for a, b in zip(serial, found, strict=True))
    print(
        f"{count} requests from {THREADS} threads: {latencies(seconds)}, {rate:.1f} / s; "
        f"no error, {equal} of {count} equal to the serial run"
    )


def memory(session: StockSession, lines: list[str], first: int, last: int) -> None:
    """Prints the memory growth of the process from request `first` to request `last`."""
    timed(session, [lines[n % len(lines)] for n in range(first)], THREADS)
    before = resident()
    timed(session, [lines[n % len(lines)] for n in range(first, last)], THREADS)
    after = resident()
    print(
        f"memory after {first} requests {before:.1f} MB, after {last} {after:.1f} MB: "
        f"{100 * (after / before - 1):+.1f} %"
    )


def long_texts(session: StockSession, lines: list[str], repeat: int) -> None:
    """Compares the latency of a text far above the length limit with one at the limit."""
    words = " ".join(lines).split()
    count, length = 0, 0
    while length < LONG:
        length += len(words[count]) + 1
        count += 1
    long = " ".join(words[:count])[:LONG]
    whole = answer(session, long)
    # The limit is in tokens, which only the graph counts. Search for the shortest text with the
    # same translation as the long one.
    low, high = 1, count
    while low < high:
        middle = (low + high) // 2
        if answer(session, " ".join(words[:middle])) == whole:
            high = middle
        else:
            low = middle + 1
    limit = " ".join(words[:high])
    # Alternate both texts, so that other load affects both equally.
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeat):
        for text, kept in zip((limit, long), seconds, strict=True):
            start = time.perf_counter()
            answer(session, text)
            kept.append(time.perf_counter() - start)
    at_limit, over = (percentile(kept, 99) for kept in seconds)
    print(f"at the length limit ({len(limit)} characters): {latencies(seconds[0])}")
    print(f"{LONG} characters: {latencies(seconds[1])}, p99 {over / at_limit:.2f} times as long")


def answer(session: StockSession, text: str) -> tuple:
    found = session.run("serving_default", {"text": Tensor.row([text])})
    return tuple(found[name].values[0] for name in ("translation", "score", "truncated"))


def timed(session: StockSession, requests: list[str], workers: int) -> tuple[list, list[float]]:
    def one(text: str) -> tuple:
        start = time.perf_counter()
        return answer(session, text), time.perf_counter() - start

    with ThreadPoolExecutor(workers) as pool:
        found = list(pool.map(one, requests))
    return [result for result, _ in found], [seconds for _, seconds in found]


def percentile(seconds: list[float], share: int) -> float:
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]


def latencies(seconds: list[float]) -> str:
    shares = (f"p{share} {1000 * percentile(seconds, share):.1f}" for share in (50, 95, 99))
    return f"{', '.join(shares)} ms"


def resident() -> float:
    """Resident memory of the process in megabytes."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
