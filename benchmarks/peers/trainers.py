"""Contestants for training: each tool with the shapes that it supports."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator

from contestants import Contestant, contestant, cores
from environments import environment
from runs import trained

TORCH = f"--threads={cores()}"


def keras_seq(work: pathlib.Path, corpus: pathlib.Path, shape: str) -> Iterator[Contestant]:
    for precision in ("float32", "bfloat16"):
        options = (trained(work), f"--shape={shape}", f"--precision={precision}")
        yield contestant(f"keras-seq {precision}", "keras_seq_trainer", *options)


def opennmt_tf(work: pathlib.Path, corpus: pathlib.Path, shape: str) -> Iterator[Contestant]:
    python = environment(work, "opennmt-tf")
    options = (corpus, f"--shape={shape}")
    yield contestant("OpenNMT-tf", "opennmt_tf_trainer", *options, python=python)


def torch(work: pathlib.Path, corpus: pathlib.Path, shape: str) -> Iterator[Contestant]:
    python = environment(work, "transformers")
    for precision in ("float32", "bfloat16"):
        options = (corpus, TORCH, f"--precision={precision}")
        name = "torch nn.Transformer loop"
        name += " bfloat16" if precision == "bfloat16" else ""
        yield contestant(name, "torch_trainer", *options, python=python)


def transformers(work: pathlib.Path, corpus: pathlib.Path, shape: str) -> Iterator[Contestant]:
    python = environment(work, "transformers")
    yield contestant(
        "transformers Marian loop", "transformers_trainer", corpus, TORCH, python=python
    )


def joeynmt(work: pathlib.Path, corpus: pathlib.Path, shape: str) -> Iterator[Contestant]:
    python = environment(work, "joeynmt")
    options = (corpus, TORCH, f"--shape={shape}")
    yield contestant("JoeyNMT", "joeynmt_trainer", *options, python=python)


# For each shape, the tools that support it.
TRAINERS = {
    "transformer": {
        "keras-seq": keras_seq,
        "opennmt-tf": opennmt_tf,
        "torch": torch,
        "transformers": transformers,
        "joeynmt": joeynmt,
    },
    "rnn": {"keras-seq": keras_seq, "opennmt-tf": opennmt_tf, "joeynmt": joeynmt},
}


def contestants_of(
    work: pathlib.Path, corpus: pathlib.Path, shape: str, only: list[str]
) -> list[tuple[str, Callable[[], Iterator[Contestant]]]]:
    """Names and contestants of the selected tools, for `contestants.available`."""
    return [
        (name, lambda peer=peer: peer(work, corpus, shape))
        for name, peer in TRAINERS[shape].items()
        if name in only
    ]
