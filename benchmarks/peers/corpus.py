"""Writes the tokens of the run in the formats that the trainers read."""

from __future__ import annotations

import json
import pathlib
from typing import NamedTuple

import runs
import worker


class Corpus(NamedTuple):
    """Directory of the corpus, and its mean lengths including the end token."""

    folder: pathlib.Path
    source: float
    target: float


def corpus(work: pathlib.Path) -> Corpus:
    """Writes the corpus if it does not exist.

    `batches.json` contains the batches of keras-seq's first epoch, for the plain loops. A batch is
    a list of pairs of id lists without start and end tokens. `source.txt` and `target.txt` contain
    the pairs as one word per id, for the data pipelines of OpenNMT-tf and JoeyNMT.
    """
    from keras_seq.data import BatchStream, TokenCorpus
    from keras_seq.run import Run

    run = Run.open(runs.trained(work))
    folder = work / "corpus"
    stream = BatchStream(
        TokenCorpus.open(run.train_directory),
        batch_tokens=run.settings.training.batch_tokens,
        seed=run.settings.seed,
        bucket_width=run.settings.data.bucket_width,
    )
    batches = [
        [
            [_inner(source), _inner(target)]
            for source, target in zip(batch["source"], batch["target_output"], strict=True)
        ]
        for batch in map(stream.batch, range(stream.batches_per_epoch))
    ]
    pairs = [pair for batch in batches for pair in batch]
    if not folder.exists():
        part = work / "corpus.part"
        part.mkdir(exist_ok=True)
        (part / "batches.json").write_text(json.dumps(batches))
        for side, name in enumerate(("source", "target")):
            lines = (" ".join(f"w{token}" for token in pair[side]) for pair in pairs)
            (part / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
        part.rename(folder)
    lengths = [sum(len(pair[side]) + 1 for pair in pairs) / len(pairs) for side in (0, 1)]
    return Corpus(folder, *lengths)


def _inner(row) -> list[int]:
    return [int(token) for token in row if token not in (worker.PAD, worker.EOS)]
