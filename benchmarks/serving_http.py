"""Load test of `keras-seq serve`: errors, equality of answers, speed, latency and memory.

    python benchmarks/serving_http.py served/ende

Starts the server on the loopback interface, sends Multi30k's validation sentences (or the lines of
--text), one per request, and stops it. Client and server share the machine's cores.
"""

import argparse
import http.client
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import machine

TOLERANCE = 1e-4


class Client:
    """A client with one connection per thread."""

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self._address = urlsplit(url).netloc
        self._path = f"/v1/models/{name}:predict"
        self._local = threading.local()

    def post(self, body: bytes) -> tuple[int, bytes]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection(self._address, timeout=600)
            self._local.connection = connection
        connection.request("POST", self._path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def translate(self, line: str) -> tuple[float, object]:
        """Returns the time in seconds, and the prediction or the error."""
        body = json.dumps({"instances": [line]}).encode()
        start = time.perf_counter()
        code, answer = self.post(body)
        seconds = time.perf_counter() - start
        return seconds, json.loads(answer)["predictions"][0] if code == 200 else (code, answer)

    def resident_mebibytes(self) -> float:
        with urllib.request.urlopen(f"http://{self._address}/metrics") as answer:
            text = answer.read().decode()
        found = re.search(r"^process_resident_memory_bytes (\S+)$", text, flags=re.MULTILINE)
        if not found:
            raise SystemExit("the server does not know its memory: this needs Linux")
        return float(found.group(1)) / 2**20


def start_server(base: pathlib.Path, options: list[str]) -> tuple[subprocess.Popen, str, float]:
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "keras_seq", "serve", str(base), "--port", "0", *options],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        print(line, end="")
        if found := re.search(r" at (http://\S+) ", line):
            # Reads the remaining output, so that the pipe does not fill.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, found.group(1), time.perf_counter() - start
    raise SystemExit(f"the server ended with {process.wait()}")


def percentiles(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return " ".join(
        f"p{share} {1000 * ordered[math.ceil(share / 100 * len(ordered)) - 1]:.0f}"
        for share in (50, 95, 99)
    )


def is_same(one: object, other: object) -> bool:
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return False
    score = abs(one["score"] - other["score"]) <= TOLERANCE
    return score and all(one[key] == other[key] for key in ("translation", "truncated"))


def load(client: Client, lines: list[str], threads: int, what: str) -> list[object]:
    """Sends one request per line and prints errors, speed and latency."""
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(client.translate, lines))
    wall = time.perf_counter() - start
    errors = [answer for _, answer in found if not isinstance(answer, dict)]
    print(
        f"{what}: {len(lines)} requests, {threads} threads: {len(errors)} errors, "
        f"{len(lines) / wall:.1f} sentences/s, milliseconds {percentiles([s for s, _ in found])}"
    )
    for error in errors[:3]:
        print(f"  {error}")
    return [answer for _, answer in found]


def words_at_the_limit(client: Client, words: list[str]) -> int:
    """Returns the smallest number of words that has the same answer as all words."""
    whole = client.translate(" ".join(words))[1]
    low, high = 1, len(words)
    while low < high:
        middle = (low + high) // 2
        if is_same(client.translate(" ".join(words[:middle]))[1], whole):
            high = middle
        else:
            low = middle + 1
    return low


def long_inputs(client: Client, lines: list[str], repeat: int) -> None:
    text = " ".join(lines)
    while len(text) < 10_000:
        text = f"{text} {text}"
    words = text[:10_000].split(" ")
    limit = words_at_the_limit(client, words)
    tails = []
    for name, words_sent in ((f"{limit} words, the limit", words[:limit]), ("10,000", words)):
        line = " ".join(words_sent)
        client.translate(line)
        seconds = sorted(client.translate(line)[0] for _ in range(repeat))
        tails.append(seconds[math.ceil(0.99 * repeat) - 1])
        print(f"{name} ({len(line):,} characters): milliseconds {percentiles(seconds)}")
    print(f"p99 of 10,000 characters / p99 at the limit: {tails[1] / tails[0]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("base", type=pathlib.Path, help="directory of versions")
    parser.add_argument("--text", type=pathlib.Path, help="lines in place of Multi30k's")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--growth", type=int, default=10_000, help="requests until the second look")
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=100, help="of each long input")
    parser.add_argument("--smoke", action="store_true", help="few requests")
    parser.add_argument("--serve", action="append", default=[], metavar="OPTION")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.requests, arguments.growth, arguments.repeat = 64, 192, 5
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

    from keras_seq.text import read_lines

    source = arguments.text or machine.multi30k() / "val.en.gz"
    sentences = list(read_lines(source))
    count, growth = arguments.requests, arguments.growth
    lines = (sentences * (growth // len(sentences) + 1))[:growth]
    print(machine.describe())
    process, url, seconds = start_server(arguments.base, arguments.serve)
    try:
        print(f"seconds from the start of the process to listening {seconds:.1f}")
        client = Client(url, arguments.base.resolve().name)
        together = load(client, lines[:count], arguments.threads, "together")
        first = client.resident_mebibytes()
        load(client, lines[count:], arguments.threads, "more")
        last = client.resident_mebibytes()
        print(
            f"resident memory: {first:.0f} MiB after {count:,} requests, {last:.0f} MiB after "
            f"{growth:,}: {last / first - 1:+.1%}"
        )
        alone = load(client, lines[:count], 1, "one by one")
        same = sum(map(is_same, together, alone))
        print(f"{same} of {count} answers together are those one by one")
        long_inputs(client, sentences, arguments.repeat)
    finally:
        process.send_signal(signal.SIGTERM)
        print(f"exit code {process.wait(60)}")


if __name__ == "__main__":
    main()
