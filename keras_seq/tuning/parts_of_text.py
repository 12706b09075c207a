"""The runs of a learning curve, each on a part of the training text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from keras_seq.data import BatchStream, TokenCorpus
from keras_seq.preparation import PairCounts, open_or_prepare
from keras_seq.preparation.files import training_files
from keras_seq.run import Run
from keras_seq.settings import TASKS, Settings
from keras_seq.storage import check_no_link, make_directory
from keras_seq.text import Notice

SHARES = (Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(1))


def run_directory(folder: Path, share: Fraction) -> Path:
    """Returns the directory of the run on a share of the text."""
    return folder / "runs" / str(share).replace("/", "-")


def prepare_parts(
    settings: Settings, folder: Path, counts: PairCounts | None, notice: Notice
) -> list[Run]:
    """Prepares a run for each share of the text, or opens it to resume. The locks are free.

    All runs have the same limit of updates: `training.max_epochs` of the whole text.
    """
    runs = []
    # The whole text first, because the limit depends on it.
    for share in reversed(SHARES):
        data = settings.data.model_copy(update={"share": float(share)})
        part = settings.model_copy(update={"data": data})
        directory = run_directory(folder, share)
        make_directory(directory.parent, parents=True)
        check_no_link(directory)
        run = open_or_prepare(part, directory, notice=notice if share == 1 else None, counts=counts)
        if share == 1 and settings.training.max_epochs is not None:
            settings = _with_steps(settings, run)
            training = settings.training
            run.update_settings(run.settings.model_copy(update={"training": training}))
        run.unlock()
        runs.append(run)
    return runs[::-1]


def num_pairs(run: Run) -> int:
    """Returns the number of training pairs of a run, without the ones that joined pairs add."""
    kept = len(TokenCorpus.open(run.train_directory))
    return round(kept / (1 + run.settings.data.concatenation))


def unit_of(settings: Settings) -> str:
    """Returns the name of what `num_pairs` counts, in the plural."""
    if settings.data.packed:
        return "pieces"
    if TASKS[settings.task].reads_sounds:
        return "recordings"
    return f"{training_files(settings.data, settings.task).unit}s"


def _with_steps(settings: Settings, run: Run) -> Settings:
    """Replaces the limit of epochs by the number of updates that the run makes in them."""
    training = settings.training
    epochs = training.max_epochs or 1
    steps = math.ceil(epochs * _batches_per_epoch(run) / training.micro_batches)
    limits: Sequence[int | None] = (steps, training.max_steps)
    steps = min(limit for limit in limits if limit is not None)
    update = {"max_epochs": None, "max_steps": steps}
    return settings.model_copy(update={"training": training.model_copy(update=update)})


def _batches_per_epoch(run: Run) -> int:
    corpus, settings = TokenCorpus.open(run.train_directory), run.settings
    if settings.training.carry_state:
        rows = settings.training.batch_tokens // settings.data.max_target_length
        return max(1, len(corpus) // max(1, rows))
    stream = BatchStream(
        corpus,
        batch_tokens=settings.training.batch_tokens,
        seed=settings.seed,
        bucket_width=settings.data.bucket_width,
    )
    return stream.batches_per_epoch
