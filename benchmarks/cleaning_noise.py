"""Adds noise of several kinds to a parallel corpus, and counts what `keras-seq clean` removes.

    python benchmarks/cleaning_noise.py train.en train.de --third Le\\ chat\\ dort.

Each kind of noise is a fiftieth of the corpus. Sentences of third languages are given one by one.
"""

import argparse
import collections
import pathlib
import random
import tempfile
import time

import machine
import table

from keras_seq.cleaning import Cleaner
from keras_seq.text import PairFiles, read_pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--third", nargs="*", default=[], help="sentences in third languages")
    parser.add_argument("--lines", type=int, help="number of pairs; by default all")
    options = parser.parse_args()
    pairs = [pair for pair in read_pairs(options.source, options.target) if all(pair)]
    pairs = pairs[: options.lines]
    labeled = [("clean", *pair) for pair in pairs]
    generator = random.Random(1)
    for _ in range(max(20, len(pairs) // 50)):
        labeled += noise(*(generator.choice(pairs) for _ in range(3)))
    labeled += [("target in a third language", pairs[0][0], text) for text in options.third]
    generator.shuffle(labeled)
    counts: collections.defaultdict[str, collections.Counter[str]]
    counts = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "pairs.tsv"
        rows = ("\t".join(text.replace("\t", " ") for text in row[1:]) for row in labeled)
        path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        begin = time.process_time()
        found = [reason for _, reason in Cleaner(PairFiles(pairs=str(path))).read()]
        seconds = time.process_time() - begin
    for (kind, *_), reason in zip(labeled, found, strict=True):
        counts[kind][reason or "kept"] += 1
    rules = sorted({rule for found in counts.values() for rule in found})
    rows = [(kind, *(str(found[rule]) for rule in rules)) for kind, found in counts.items()]
    table.show(("kind", *rules), rows)
    print(f"{len(labeled) / seconds:,.0f} pairs a second of processor time")
    print(machine.describe())


def noise(
    pair: tuple[str, str], other: tuple[str, str], third: tuple[str, str]
) -> list[tuple[str, str, str]]:
    """Returns one wrong pair of each kind: kind, source and target."""
    source, target = pair
    return [
        ("sides exchanged", target, source),
        ("target is the source", source, source),
        ("target in the source language", source, other[0]),
        ("target of another pair", source, other[1]),
        ("target cut to a quarter", source, target[: len(target) // 4]),
        ("three targets", source, f"{target} {other[1]} {third[1]}"),
        ("target in another script", source, "Это совсем другое письмо."),
    ]


if __name__ == "__main__":
    main()
