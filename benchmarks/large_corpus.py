"""Writes a corpus larger than memory, opens it, reads batches and measures each part.

    python benchmarks/large_corpus.py --pairs 5000000

The pairs are random ids with the lengths and frequencies of subwords (about 15 per side, 8,000
distinct ids). Prints time, bytes on disk and resident memory after each part. Resident memory
includes pages of mapped files, which the system reclaims when necessary; anonymous memory is what
the process itself allocates.
"""

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keras_seq.data import BatchStream, TokenCorpus, write_corpus

VOCABULARY = 8000
FIRST_ID = 4
MAX_LENGTH = 100


def random_pairs(count: int, seed: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yields pairs of random id lists; a few of them exceed the length limit."""
    random = np.random.default_rng(seed)
    frequencies = 1 / np.arange(1, VOCABULARY - FIRST_ID + 1)
    ids = FIRST_ID + np.searchsorted(
        np.cumsum(frequencies / frequencies.sum()), random.random(2**22), side="right"
    ).clip(max=VOCABULARY - FIRST_ID - 1)
    left = count
    while left:
        chunk = min(left, 50_000)
        source = random.lognormal(2.6, 0.5, chunk)
        target = source * random.lognormal(0, 0.2, chunk)
        lengths = np.stack([source, target], axis=1).astype(np.int64).clip(max=MAX_LENGTH + 20)
        starts = random.integers(0, len(ids) - 2 * MAX_LENGTH, chunk)
        for start, (source_length, target_length) in zip(
            starts.tolist(), lengths.tolist(), strict=True
        ):
            middle = start + source_length
            yield ids[start:middle].tolist(), ids[middle : middle + target_length].tolist()
        left -= chunk


def resident() -> str:
    """Resident, anonymous and peak memory, as far as the system reports them."""
    status = Path("/proc/self/status")
    if not status.exists():
        return _peak()
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    sizes = [
        f"{name} {int(fields[key].split()[0]) / 1024:.0f} MiB"
        for name, key in (("now", "VmRSS"), ("anonymous", "RssAnon"), ("peak", "VmHWM"))
        if key in fields
    ]
    return "resident: " + ", ".join(sizes)


def _peak() -> str:
    try:
        import resource
    except ImportError:
        return "resident: this system does not tell"
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # The unit is bytes on macOS, kilobytes elsewhere.
    return f"resident: peak {size / (2**20 if sys.platform == 'darwin' else 2**10):.0f} MiB"


def report(what: str, seconds: float, detail: str) -> None:
    """Prints one line of the table."""
    print(f"{what:<28}{seconds:8.2f} s   {detail:<46} {resident()}", flush=True)


def measure(directory: Path, pairs: int, batches: int, batch_tokens: int) -> None:
    """Runs every part once and prints one line per part."""
    print(
        f"{pairs} pairs, {batch_tokens} tokens a batch; {platform.machine()}, {os.cpu_count()} "
        f"cores, Python {platform.python_version()}, numpy {np.__version__}"
    )
    print(f"at the start: {resident()}")

    start = time.perf_counter()
    for _ in random_pairs(pairs, seed=1):
        pass
    making = time.perf_counter() - start
    report("making pairs, for itself", making, f"{pairs / making:,.0f} pairs/s")

    start = time.perf_counter()
    counts = write_corpus(
        directory,
        random_pairs(pairs, seed=1),
        max_source_length=MAX_LENGTH,
        max_target_length=MAX_LENGTH,
        vocabulary_size=VOCABULARY,
    )
    seconds = time.perf_counter() - start
    report(
        "making and writing", seconds, f"{pairs / max(seconds - making, 1e-9):,.0f} pairs/s written"
    )
    size = sum(path.stat().st_size for path in directory.iterdir())
    print(f"{counts}\n{size:,} bytes on disk, {size / counts.kept:.1f} a pair")

    start = time.perf_counter()
    corpus = TokenCorpus.open(directory)
    report("opening", time.perf_counter() - start, f"{len(corpus):,} pairs")

    for shapes in ("exact", "buckets"):
        start = time.perf_counter()
        stream = BatchStream(corpus, batch_tokens=batch_tokens, seed=1, shapes=shapes)
        report(
            f"{shapes}: plan", time.perf_counter() - start, f"{stream.batches_per_epoch} batches"
        )
        start = time.perf_counter()
        stream.batch(0)
        report(f"{shapes}: order of an epoch", time.perf_counter() - start, "")
        start = time.perf_counter()
        for k in range(1, batches + 1):
            stream.batch(k)
        seconds = time.perf_counter() - start
        report(
            f"{shapes}: {batches} batches",
            seconds,
            f"{batches / seconds:,.0f} batches/s, {1000 * seconds / batches:.2f} ms each",
        )
        for key in ("source", "target_output"):
            ids = [stream.batch(k)[key] for k in range(batches)]
            share = 1 - sum(map(np.count_nonzero, ids)) / sum(array.size for array in ids)
            print(f"padding: {share:.1%} of {key}")
        start = time.perf_counter()
        stream.batch(stream.batches_per_epoch)
        report(f"{shapes}: order of the next", time.perf_counter() - start, "")


def main() -> None:
    """Parses the options and measures in the given or a temporary directory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5_000_000)
    parser.add_argument("--batches", type=int, default=2_000)
    parser.add_argument("--batch-tokens", type=int, default=4_096)
    parser.add_argument("--directory", type=Path, help="kept; default: a temporary one, removed")
    options = parser.parse_args()
    if min(options.pairs, options.batches, options.batch_tokens) < 1:
        sys.exit("--pairs, --batches and --batch-tokens must be positive")
    sizes = (options.pairs, options.batches, options.batch_tokens)
    if options.directory is not None:
        measure(options.directory, *sizes)
        return
    with tempfile.TemporaryDirectory() as directory:
        measure(Path(directory) / "corpus", *sizes)


if __name__ == "__main__":
    main()
