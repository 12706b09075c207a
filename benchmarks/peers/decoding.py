"""Compares the decoding speed of keras-seq and other tools, in alternating turns.

    python benchmarks/peers/decoding.py --work ~/peers
    python benchmarks/peers/decoding.py --work ~/peers --only keras-seq ctranslate2 --greedy

Every model has the shape of `transformer-small` (3 + 3 layers, 256 units, 1,024 in feed-forward, 4
heads, a joint vocabulary of 8,000, embeddings tied), and every decoder writes exactly 15 tokens per
sentence, so all do the same work. The weights are new; CTranslate2 has the weights of keras-seq.
Only keras-seq tokenizes and detokenizes. The other tools receive pieces or padded tensors of ids,
prepared before the clock starts. The sentences are Multi30k's test text, sorted by length, so
batches have almost no padding. keras-seq's own `--engine ctranslate2` is left out, because it
repeats the search for each line that reaches the length limit, and here every line does.

With batch size 1, sentences are decoded one call after another. Each decoder has its own process.
Each peer except CTranslate2 has its own Python environment, which the first run creates in `--work`
(5 GB, more if torch includes CUDA). A peer that cannot be installed or fails is skipped, and the
reason is printed. The first turn traces, warms up and checks the output lengths; it is not counted.
Processor time is per sentence and includes all threads of the decoder. If sentences per second vary
but processor time does not, other processes used the machine.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import machine  # noqa: E402
import worker  # noqa: E402
from contest import Answer, Entrant, compete  # noqa: E402
from contestants import available  # noqa: E402
from decoders import DECODERS, Column  # noqa: E402
from environments import SkippedError  # noqa: E402
from runs import test_lines, trained  # noqa: E402
from table import show  # noqa: E402

# Batches of 1 decode this many times fewer sentences.
FEWER = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for what is made")
    parser.add_argument("--only", nargs="+", choices=DECODERS, default=list(DECODERS))
    parser.add_argument("--lines", type=int, default=512, help="in batches of 32; of 1: an eighth")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--greedy", action="store_true", help="beam 1, batch 32, too")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    print(machine.describe())
    try:
        trained(arguments.work)
    except SkippedError as reason:
        raise SystemExit(f"no run to decode with: {reason}") from None
    columns = [Column(5, 32), Column(5, 1), *([Column(1, 32)] if arguments.greedy else [])]
    decode(arguments, columns)


def decode(arguments: argparse.Namespace, columns: list[Column], forms: int | None = None) -> None:
    """Prints a table for each column, with at most `forms` contestants per peer."""
    all_texts, all_ids = sentences(arguments.work, arguments.lines)
    for column in columns:
        step = 1 if column.size > 1 else FEWER
        texts, ids = all_texts[::step], all_ids[::step]
        mean = sum(map(len, ids)) / len(ids)
        print(
            f"\nDecoding, beam {column.beam}, batch {column.size}: {len(texts)} sentences, "
            f"{mean:.1f} pieces each on the average\n",
            flush=True,
        )
        peers = [
            (name, lambda peer=peer, column=column: peer(arguments.work, column))
            for name, peer in DECODERS.items()
            if name in arguments.only
        ]

        def turn(entrant, counted, texts=texts, ids=ids, size=column.size):
            return decode_once(entrant, texts, ids, size, counted)

        entrants = available(peers, forms)
        show_decoding(compete(arguments.work, entrants, turn, arguments.repeat), len(texts))


def sentences(work: pathlib.Path, count: int) -> tuple[list[str], list[list[int]]]:
    """Test sentences and their ids, the longest first."""
    from keras_seq.run import Run
    from keras_seq.text import read_lines

    texts = list(read_lines(test_lines(work)))[:count]
    rows = Run.open(trained(work)).source_tokenizer.encode(texts)
    order = sorted(range(len(texts)), key=lambda i: -len(rows[i]))
    return [texts[i] for i in order], [rows[i] for i in order]


def decode_once(
    entrant: Entrant, texts: list[str], ids: list[list[int]], size: int, counted: bool
) -> Answer:
    """Runs one turn; an uncounted turn checks the output lengths.

    Raises:
        SkippedError: An output does not have `worker.STEPS` tokens.
    """
    batches = worker.batches(list(zip(texts, ids, strict=True)), size)
    requests = []
    for number in range(entrant.processes):
        share = [pair for batch in batches[number :: entrant.processes] for pair in batch]
        requests.append(
            {
                "texts": [text for text, _ in share],
                "ids": [row for _, row in share],
                "lengths": not counted,
            }
        )
    answers = entrant.ask(requests)
    for answer in answers:
        if answer["lengths"] not in (None, [worker.STEPS], []):
            raise SkippedError(f"wrote {answer['lengths']} tokens, expected {worker.STEPS}")
    return {
        "seconds": max(answer["seconds"] for answer in answers),
        "processor": sum(answer["processor"] for answer in answers),
        "peak": sum(answer["peak"] for answer in answers),
    }


def show_decoding(found: dict[str, list[Answer]], count: int) -> None:
    """Prints medians over turns, and the speed of keras-seq's best form relative to each."""
    if not found:
        return
    each = {name: [count / turn["seconds"] for turn in turns] for name, turns in found.items()}
    medians = {name: statistics.median(rates) for name, rates in each.items()}
    ours = [rate for name, rate in medians.items() if name.startswith("keras-seq")]
    rows = []
    for name, turns in found.items():
        processor = statistics.median(1000 * turn["processor"] / count for turn in turns)
        rows.append(
            [
                name,
                f"{medians[name]:.1f}",
                f"{min(each[name]):.1f}-{max(each[name]):.1f}",
                f"{processor:.1f}",
                f"{max(ours) / medians[name]:.2f}" if ours else "",
                f"{turns[-1]['peak'] / 2**30:.2f}",
            ]
        )
    head = (
        "",
        "sentences/s",
        "lowest-highest",
        "processor ms a sentence",
        "keras-seq's best is times as fast",
        "peak GiB",
    )
    print()
    show(head, rows)


if __name__ == "__main__":
    main()
