"""Several checkpoints of a run, averaged into a run of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from keras_seq.run import Run, check_new
from keras_seq.run.models import build_run_model, weight_shapes
from keras_seq.storage import DirectoryLock, reason
from keras_seq.text import InputError

__all__ = ["average_run"]


def average_run(
    run: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    count: int | None = None,
    *,
    of: Literal["last", "best"] = "last",
    which: Sequence[str | int] = (),
    overwrite: bool = False,
    notice: Callable[[str], None] | None = None,
) -> list[int]:
    """Makes a run whose weights are the mean of several checkpoints of another.

    It translates, scores and exports as any run does; it has no training to go on with.

    Args:
        run: A run directory.
        directory: A new or empty directory.
        count: Positive integer, how many checkpoints. None if `which` names them.
        of: `"last"` takes the newest, `"best"` those whose validations scored best.
        which: The checkpoints by name, instead of `count`: `"best"`, `"latest"`, or steps.
        overwrite: Whether an earlier run in `directory` is deleted.
        notice: Called with a line for the user.

    Returns:
        The steps averaged, ascending.

    Raises:
        InputError: Fewer checkpoints than asked for, a damaged one, or a directory that
            cannot be used.
        ValueError: If `count` is not a positive integer, or both it and `which` are given.

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 6.1,
        https://arxiv.org/abs/1706.03762
    """
    if (count is None) != bool(which):
        raise ValueError(f"Pass either `count` or `which`, received {count!r} and {which!r}.")
    if count is not None and (not isinstance(count, int) or count < 1):
        raise ValueError(f"`count` must be a positive integer, received {count!r}.")
    given = Run.open(run, notice=notice)
    read, written = given.path.resolve(), Path(directory).resolve()
    if written == read or read in written.parents:
        raise InputError(f"{directory}: is the run to average, or lies in it: name another place")
    given.require_weights()
    steps = (
        sorted({given.stored_step(one) for one in which})
        if count is None
        else _steps(given, count, of)
    )
    shapes = weight_shapes(build_run_model(given))
    sums: dict[str, np.ndarray] = {}
    for step in steps:
        for name, array in given.load_weights(shapes, step).items():
            # In double precision: nothing is lost that float32 could hold.
            sums[name] = sums.get(name, 0.0) + array.astype(np.float64)
    means = {
        name: (total / len(steps)).astype(np.dtype(shapes[name][1])) for name, total in sums.items()
    }
    sources, references = given.valid_lines()
    check_new(directory, overwrite=overwrite)
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{directory}: cannot be made: {reason(error)}") from None
    # A training in that directory holds the lock.
    lock = DirectoryLock(Path(directory))
    made = Run.create(directory, given.settings, overwrite=overwrite, notice=notice, lock=lock)
    try:
        made.save_vocabularies(*given.vocabularies)
        made.save_valid_lines(sources, references)
        shown = ", ".join(f"{step:,}" for step in steps)
        made.write_card(
            f"# A keras-seq run\n\nThe mean of the weights of `{given.path}` after steps {shown}; "
            "its README.md says what these were trained on.\n\n```\n"
            f"keras-seq translate {made.path} < input > output\n```\n"
        )
        made.save_checkpoint(steps[-1], {"weights": means}, {"averaged": steps})
        made.mark_best(steps[-1])
    except BaseException:
        made.discard()
        raise
    finally:
        made.unlock()
    if notice:
        notice(f"{made.path}: the mean of the weights after steps {shown}")
    return steps


def _steps(run: Run, count: int, of: str) -> list[int]:
    saved = run.saved_steps
    if of == "best":
        scores = run.logs.validation_scores()
        saved = sorted((step for step in saved if step in scores), key=scores.__getitem__)
    if len(saved) < count:
        kind = "validated checkpoints" if of == "best" else "checkpoints"
        raise InputError(
            f"{run.path}: has {len(saved):,} {kind}, {count:,} were asked for: ask for fewer, or "
            f"train with a larger training.keep_checkpoints "
            f"({run.settings.training.keep_checkpoints})"
        )
    return sorted(saved[-count:])
