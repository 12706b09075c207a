"""Measures training in alternating turns: tokens per second and share of the ceiling."""

from __future__ import annotations

import argparse
import pathlib
import statistics

import ceiling
import operations
from contest import Answer, Entrant, compete
from contestants import available
from corpus import Corpus, corpus
from runs import trained
from table import show
from trainers import contestants_of

TITLES = {
    "transformer": "Training, the shape of `transformer-small`",
    "rnn": "Training, bidirectional LSTM 2 x 256 and LSTM 512 with Bahdanau's attention",
}


def train(arguments: argparse.Namespace, shape: str, forms: int | None = None) -> list[Answer]:
    """Prints the table of a shape and returns the figures of the ceiling."""
    made = corpus(arguments.work)
    print(f"\n{TITLES[shape]}\n", flush=True)
    entrants = [
        ceiling.worker_of(arguments.sizes),
        *available(contestants_of(arguments.work, made.folder, shape, arguments.only), forms),
    ]

    def turn(entrant: Entrant, counted: bool) -> Answer:
        if entrant.name == ceiling.NAME:
            return ceiling.turn(entrant, counted)
        return entrant.ask([{"batches": arguments.batches if counted else arguments.warm_up}])[0]

    found = compete(arguments.work, entrants, turn, arguments.repeat)
    products = found.pop(ceiling.NAME)
    show_training(found, products, work_of(arguments.work, made, shape))
    return products


def work_of(work: pathlib.Path, made: Corpus, shape: str) -> float:
    """Floating-point operations per target token."""
    from keras_seq.run import Run

    settings = Run.open(trained(work)).settings
    vocabulary = settings.tokenizer.size
    if shape == "rnn":
        return operations.rnn(made.source, made.target, vocabulary)
    return operations.transformer(settings.model, made.source, made.target, vocabulary)


def show_training(found: dict[str, list[Answer]], products: list[Answer], work: float) -> None:
    """Prints medians over turns, and the speed of the first contestant relative to each."""
    limits = ceiling.ceilings(products)
    rates, rows = {}, []
    for name, turns in found.items():
        each = [turn["tokens"] / turn["seconds"] for turn in turns]
        rates[name] = statistics.median(each)
        processor = statistics.median(1e6 * turn["processor"] / turn["tokens"] for turn in turns)
        limit = limits["bfloat16" if "bfloat16" in name else "float32"]
        first = next(iter(rates.values()))
        rows.append(
            [
                name,
                f"{rates[name]:,.0f}",
                f"{min(each):,.0f}-{max(each):,.0f}",
                f"{processor:,.0f}",
                f"{100 * rates[name] * work / limit:.0f} %",
                f"{first / rates[name]:.2f}",
                f"{turns[-1]['peak'] / 2**30:.2f}",
            ]
        )
    print(
        f"\n{work / 1e6:.1f} MFLOP a target token; ceilings of these turns: "
        + ", ".join(f"{name} {limit / 1e9:.0f} GFLOP/s" for name, limit in limits.items())
        + "\n"
    )
    head = (
        "",
        "target tokens/s",
        "lowest-highest",
        "processor us a token",
        "share of its ceiling",
        f"{next(iter(found), 'the first')} is times as fast",
        "peak GiB",
    )
    show(head, rows)
