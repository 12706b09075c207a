"""Averages the weights of several checkpoints of a run into a new run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from keras_seq.run import Run, Shapes, check_new, lock_directory
from keras_seq.run.models import build_run_model, weight_shapes
from keras_seq.settings import TASKS
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
    """Creates a run whose weights are the mean of several checkpoints of another run.

    Averages the `count` newest or best checkpoints, or the checkpoints that `which` lists:
    `"best"`, `"latest"`, or steps. The new run translates, scores and exports like any other run,
    but its training cannot be resumed. The temperature of a classifier and the threshold of a
    wake-word detector are the means of those of the averaged checkpoints. Returns the averaged
    steps, ascending.

    Raises InputError if there are fewer than `count` checkpoints, any is damaged, or `directory`
    cannot be used; and ValueError if `count` is not a positive integer, or both `count` and `which`
    are given.

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 6.1,
        https://arxiv.org/abs/1706.03762
    """
    if (count is None) != bool(which):
        raise ValueError(f"Pass either `count` or `which`, received {count!r} and {which!r}.")
    if count is not None and (not isinstance(count, int) or count < 1):
        raise ValueError(f"`count` must be a positive integer, received {count!r}.")
    base = Run.open(run, notice=notice)
    base_path, path = base.path.resolve(), Path(directory).resolve()
    if path == base_path or base_path in path.parents:
        raise InputError(f"{directory}: is the run to average, or lies in it: name another place")
    base.require_weights()
    if count is None:
        steps = sorted({base.checkpoints.resolve(name) for name in which})
    else:
        steps = _select_steps(base, count, of)
    shapes = weight_shapes(build_run_model(base))
    means = _mean_weights(base, steps, shapes)
    sources, references = base.valid_lines()
    check_new(directory, overwrite=overwrite)
    # Raises if a training process uses the directory.
    lock = lock_directory(directory)
    averaged = Run.create(directory, base.settings, overwrite=overwrite, notice=notice, lock=lock)
    try:
        averaged.save_vocabularies(*base.vocabularies)
        averaged.save_valid_lines(sources, references)
        step_list = ", ".join(f"{step:,}" for step in steps)
        usage = TASKS[base.settings.task].usage.format(averaged.path)
        averaged.write_card(
            f"# A keras-seq run\n\nThe mean of the weights of `{base.path}` after steps "
            f"{step_list}; its README.md describes their training.\n\n```\nkeras-seq {usage}\n```\n"
        )
        averaged.save_checkpoint(steps[-1], {"weights": means}, {"averaged": steps})
        averaged.mark_best(steps[-1])
        if fitted := _mean_fitted_values(base, steps):
            averaged.logs.append_metrics({"kind": "validation", "step": steps[-1], **fitted})
    except BaseException:
        averaged.discard()
        raise
    finally:
        averaged.unlock()
    if notice:
        notice(f"{averaged.path}: the mean of the weights after steps {step_list}")
    return steps


def _select_steps(run: Run, count: int, of: str) -> list[int]:
    """Returns the last or the best `count` stored steps, ascending."""
    steps = run.checkpoints.steps
    if of == "best":
        scores = run.logs.validation_scores()
        steps = sorted((step for step in steps if step in scores), key=scores.__getitem__)
    if len(steps) < count:
        kind = "validated checkpoints" if of == "best" else "checkpoints"
        raise InputError(
            f"{run.path}: has {len(steps):,} {kind}, expected at least {count:,}: average fewer, "
            "or train with a larger training.keep_checkpoints "
            f"({run.settings.training.keep_checkpoints})"
        )
    return sorted(steps[-count:])


def _mean_fitted_values(run: Run, steps: Sequence[int]) -> dict[str, float]:
    """Returns the means of the values that validations fitted to the outputs of a model."""
    means = {}
    for name in ("temperature", "threshold", "outside_penalty"):
        values = run.logs.validation_values(name)
        if found := [values[step] for step in steps if step in values]:
            means[name] = sum(found) / len(found)
    return means


def _mean_weights(run: Run, steps: Sequence[int], shapes: Shapes) -> dict[str, np.ndarray]:
    sums: dict[str, np.ndarray] = {}
    for step in steps:
        for name, array in run.load_weights(shapes, step).items():
            # Double precision holds the sum of float32 values without loss.
            sums[name] = sums.get(name, 0.0) + array.astype(np.float64)
    return {
        name: (total / len(steps)).astype(np.dtype(shapes[name][1])) for name, total in sums.items()
    }
