"""The training pairs as every trainer takes them, made once of the run's tokens."""

from __future__ import annotations

import json
import pathlib
from typing import NamedTuple

import runs
import worker


class Corpus(NamedTuple):
    """Files of it, and its mean lengths with the end token."""

    folder: pathlib.Path
    source: float
    target: float


def corpus(work: pathlib.Path) -> Corpus:
    """Makes what is not there yet.

    `batches.json` has the batches of keras-seq's first epoch, each a list of pairs of lists of ids,
    begin and end left out: for loops that are fed by hand. `source.txt` and `target.txt` have the
    pairs in words that stand for ids, for the pipelines of toolkits.
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
