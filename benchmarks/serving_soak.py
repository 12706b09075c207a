"""Soak of `keras-seq serve`: memory under mixed load, silent connections, restarts under load.

    python benchmarks/serving_soak.py served/ende --minutes 60 --connections 10000 --restarts 1000

The clients send Multi30k's validation sentences (or the lines of --text), broken requests and half
requests. Each answer is compared with the answer to the same sentence alone. Exits with code 1 if
an answer is wrong, the memory grows by more than 2 %, or a server does not end well. `--picture`
draws the memory over time. With `--minutes 0`, `--connections 0` or `--restarts 0` a part is left
out.
"""

import argparse
import contextlib
import http.client
import itertools
import json
import os
import pathlib
import random
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

import machine
from serving_http import Client, is_same, start_server

MAX_GROWTH = 0.02
# The answer to each sentence alone.
Answers = dict[str, object]
# Bodies that are answered with an error, and the code of the answer.
BROKEN = {
    b"{": 400,
    b"[]": 400,
    b'{"instances": []}': 400,
    b'{"instances": [1]}': 400,
    b'{"instances": [{"other": "a"}]}': 400,
}


class Counts:
    """Counts of answers, by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.right = self.refused = 0
        self.wrong: list[object] = []

    def add(self, right: bool, found: object) -> None:
        with self._lock:
            self.right += right
            if not right:
                self.wrong.append(found)

    def refuse(self) -> None:
        with self._lock:
            self.refused += 1


def send_half(address: str) -> None:
    """Sends a part of a request and closes the connection."""
    host, port = address.split(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 10) as client:
        client.sendall(b"POST /v1/models/a:predict HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        time.sleep(random.uniform(0, 0.2))


def work(client: Client, address: str, expected: Answers, end: float, seed: int) -> Counts:
    """Sends sentences, one in ten of them together with a broken request, until `end`."""
    counts, draw = Counts(), random.Random(seed)
    lines = list(expected)
    while time.monotonic() < end:
        line = draw.choice(lines)
        found = client.translate(line)[1]
        counts.add(is_same(found, expected[line]), found)
        if draw.random() < 0.1:
            body, code = draw.choice(list(BROKEN.items()))
            received = client.post(body)
            counts.add(received[0] == code, (body, received))
            send_half(address)
    return counts


def draw(memory: list[tuple[float, float]], path: pathlib.Path) -> None:
    """Draws resident memory in MiB over minutes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # Makes the SVG file reproducible.
    pyplot.rcParams["svg.hashsalt"] = "keras-seq"
    figure, axes = pyplot.subplots(figsize=(6.4, 3), layout="constrained")
    axes.plot(*zip(*memory, strict=True))
    axes.set(xlabel="minutes", ylabel="resident memory (MiB)")
    axes.set_ylim(0, 1.1 * max(mebibytes for _, mebibytes in memory))
    axes.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def soak(
    client: Client,
    address: str,
    expected: Answers,
    minutes: float,
    picture: pathlib.Path | None = None,
) -> bool:
    """Loads the server, and compares its memory after a fifth of the time with that at the end."""
    start = time.monotonic()
    end = start + 60 * minutes
    found: list[Counts] = []
    workers = [
        threading.Thread(
            target=lambda seed=seed: found.append(work(client, address, expected, end, seed))
        )
        for seed in range(8)
    ]
    for worker in workers:
        worker.start()
    record: list[tuple[float, float]] = []
    while time.monotonic() < end:
        time.sleep(min(6 * minutes / 10, 10.0))
        record.append(((time.monotonic() - start) / 60, client.resident_mebibytes()))
    for worker in workers:
        worker.join()
    if picture:
        draw(record, picture)
    memory = [mebibytes for _, mebibytes in record]
    fifth = max(1, len(memory) // 5)
    before = statistics.median(memory[fifth : 2 * fifth] or memory)
    after = statistics.median(memory[-fifth:])
    wrong = [one for counts in found for one in counts.wrong]
    print(
        f"{minutes:g} minutes: {sum(counts.right for counts in found):,} right answers, "
        f"{len(wrong)} wrong; resident memory {before:.0f} MiB in the second fifth, "
        f"{after:.0f} MiB in the last: {after / before - 1:+.2%}, at most {max(memory):.0f} MiB"
    )
    for one in wrong[:3]:
        print(f"  {one}")
    return not wrong and len(found) == len(workers) and after / before - 1 <= MAX_GROWTH


def silent(name: str, address: str, expected: Answers, count: int) -> bool:
    """Opens silent connections. A client that is connected gets answers; later, so do new ones."""
    from keras_seq.operating_system import raise_open_file_limit

    host, port = address.split(":")
    count = min(count, raise_open_file_limit(count + 100) - 100)
    line = next(iter(expected))
    # The server has closed connections that were idle during the soak.
    client = Client(f"http://{address}", name)
    right = is_same(client.translate(line)[1], expected[line])
    with contextlib.ExitStack() as opened:
        connected = 0
        for _ in range(count):
            with contextlib.suppress(OSError):
                opened.enter_context(socket.create_connection((host, int(port)), 10))
                connected += 1
        start = time.perf_counter()
        right = right and is_same(client.translate(line)[1], expected[line])
        seconds = time.perf_counter() - start
    time.sleep(1)
    other = Client(f"http://{address}", name)
    right = right and is_same(other.translate(line)[1], expected[line])
    print(f"{connected:,} silent connections: answered in {seconds:.2f} s; right: {right}")
    return right


def restart(base: pathlib.Path, options: list[str], expected: Answers, count: int) -> bool:
    """Ends a server under load, again and again. Answers may be missing, but not wrong."""
    total, seconds, good = Counts(), [], True
    for number in range(count):
        with contextlib.redirect_stdout(None):
            process, url, _ = start_server(base, options)
        client = Client(url, base.resolve().name)
        stopped = threading.Event()

        def load(client: Client = client, stopped: threading.Event = stopped) -> None:
            for line in itertools.cycle(expected):
                try:
                    found = client.translate(line)[1]
                except (OSError, http.client.HTTPException):
                    total.refuse()
                    if stopped.is_set():
                        return
                else:
                    busy = isinstance(found, tuple) and found[0] == 503
                    if busy:
                        total.refuse()
                    else:
                        total.add(is_same(found, expected[line]), found)

        workers = [threading.Thread(target=load) for _ in range(4)]
        for worker in workers:
            worker.start()
        time.sleep(0.5 + (number % 10) / 20)
        stopped.set()
        start = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        try:
            good = process.wait(60) == 0 and good
        except subprocess.TimeoutExpired:
            process.kill()
            good = False
        seconds.append(time.perf_counter() - start)
        for worker in workers:
            worker.join()
    print(
        f"{count:,} restarts: {total.right:,} right answers, {len(total.wrong)} wrong, "
        f"{total.refused:,} without an answer; ended in {max(seconds):.2f} s at most, well: {good}"
    )
    for one in total.wrong[:3]:
        print(f"  {one}")
    return good and not total.wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("base", type=pathlib.Path, help="directory of versions")
    parser.add_argument("--text", type=pathlib.Path, help="lines in place of Multi30k's")
    parser.add_argument("--lines", type=int, default=200, help="sentences to send")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--picture", type=pathlib.Path, help="PNG or SVG file of the memory")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--restarts", type=int, default=1000)
    parser.add_argument("--serve", action="append", default=[], metavar="OPTION")
    arguments = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

    from keras_seq.text import read_lines

    source = arguments.text or machine.multi30k() / "val.en.gz"
    lines = list(itertools.islice(filter(str.strip, read_lines(source)), arguments.lines))
    print(machine.describe())
    process, url, _ = start_server(arguments.base, arguments.serve)
    try:
        client = Client(url, arguments.base.resolve().name)
        address = urlsplit(url).netloc
        expected = {line: client.translate(line)[1] for line in lines}
        well = True
        if arguments.minutes:
            well = soak(client, address, expected, arguments.minutes, arguments.picture)
        if arguments.connections:
            well = silent(client.name, address, expected, arguments.connections) and well
    finally:
        process.send_signal(signal.SIGTERM)
        print(f"exit code {process.wait(60)}")
    if arguments.restarts:
        well = restart(arguments.base, arguments.serve, expected, arguments.restarts) and well
    print(json.dumps({"well": well}))
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
