"""Averages the weights or the probabilities of several checkpoints of a run in a new run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from keras_seq.run import Run, check_new, lock_directory
from keras_seq.run.checkpoint_ensemble import ensemble_settings, ensemble_weights
from keras_seq.run.models import build_run_model, weight_shapes
from keras_seq.settings import TASKS, Settings
from keras_seq.text import InputError

__all__ = ["average_run"]


def average_run(
    run: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    count: int | None = None,
    *,
    of: Literal["last", "best", "cycles"] = "last",
    which: Sequence[str | int] = (),
    probabilities: bool = False,
    overwrite: bool = False,
    notice: Callable[[str], None] | None = None,
) -> list[int]:
    """Creates a run that averages the weights or the probabilities of checkpoints of another run.

    Averages the `count` newest or best checkpoints, those at the ends of the newest cycles
    (`training.cycles`), or the checkpoints that `which` lists: `"best"`, `"latest"`, or steps. The
    new run translates, scores and exports like any other run, but its training cannot be resumed.
    The temperature of a classifier and the threshold of a wake-word detector are the means of those
    of the averaged checkpoints.

    With `probabilities`, the new run is an ensemble: each checkpoint is a member of its model
    (`model.members`). It is as many times as large and slow, and the checkpoints may differ more,
    as at the ends of cycles.

    Returns:
        The averaged steps, ascending.

    Raises:
        InputError: If there are fewer than `count` checkpoints, any is damaged, `directory` cannot
            be used, or the model cannot be an ensemble.
        ValueError: If `count` is not a positive integer, or both `count` and `which` are given.

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 6.1,
        https://arxiv.org/abs/1706.03762; of probabilities Huang et al., "Snapshot Ensembles: Train
        1, Get M for Free", 2017, https://arxiv.org/abs/1704.00109
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
    settings = ensemble_settings(base, len(steps)) if probabilities else base.settings
    weights = ensemble_weights(base, steps, settings) if probabilities else _mean(base, steps)
    step_list = ", ".join(f"{step:,}" for step in steps)
    description = f"the mean of the weights after steps {step_list}"
    if probabilities:
        description = f"an ensemble of the models after steps {step_list}"
    _write(base, directory, settings, steps, weights, description, overwrite, notice)
    if notice:
        notice(f"{directory}: {description}")
    return steps


def _write(
    base: Run,
    directory: str | os.PathLike[str],
    settings: Settings,
    steps: Sequence[int],
    weights: Mapping[str, np.ndarray],
    description: str,
    overwrite: bool,
    notice: Callable[[str], None] | None,
) -> None:
    """Writes the new run."""
    sources, references = base.valid_lines()
    check_new(directory, overwrite=overwrite)
    # Raises if a training process uses the directory.
    lock = lock_directory(directory)
    averaged = Run.create(directory, settings, overwrite=overwrite, notice=notice, lock=lock)
    try:
        averaged.save_vocabularies(*base.vocabularies)
        averaged.save_valid_lines(sources, references)
        usage = TASKS[settings.task].usage.format(averaged.path)
        averaged.write_card(
            f"# A keras-seq run\n\n{description[0].upper()}{description[1:]} of `{base.path}`; its "
            f"README.md describes their training.\n\n```\nkeras-seq {usage}\n```\n"
        )
        averaged.save_checkpoint(steps[-1], {"weights": weights}, {"averaged": steps})
        averaged.mark_best(steps[-1])
        if fitted := _mean_fitted_values(base, steps):
            averaged.logs.append_metrics({"kind": "validation", "step": steps[-1], **fitted})
    except BaseException:
        averaged.discard()
        raise
    finally:
        averaged.unlock()


def _select_steps(run: Run, count: int, of: str) -> list[int]:
    """Returns the last or the best `count` stored steps, or ends of cycles, ascending."""
    steps, kind = run.checkpoints.steps, "checkpoints"
    training = run.settings.training
    advice = f"train with a larger training.keep_checkpoints ({training.keep_checkpoints})"
    if of == "best":
        scores = run.logs.validation_scores()
        steps = sorted((step for step in steps if step in scores), key=scores.__getitem__)
        kind = "validated checkpoints"
    elif of == "cycles":
        steps, kind = run.checkpoints.permanent_steps, "checkpoints at the end of a cycle"
        advice = f"train with more training.cycles ({training.cycles})"
        if training.patience:
            advice += ", and without early stopping (training.patience=0)"
    if len(steps) < count:
        raise InputError(
            f"{run.path}: has {len(steps):,} {kind}, expected at least {count:,}: average fewer, "
            f"or {advice}"
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


def _mean(run: Run, steps: Sequence[int]) -> dict[str, np.ndarray]:
    """Returns the mean weights of checkpoints, by name."""
    shapes = weight_shapes(build_run_model(run))
    sums: dict[str, np.ndarray] = {}
    for step in steps:
        for name, array in run.load_weights(shapes, step).items():
            # Double precision holds the sum of float32 values without loss.
            sums[name] = sums.get(name, 0.0) + array.astype(np.float64)
    return {
        name: (total / len(steps)).astype(np.dtype(shapes[name][1])) for name, total in sums.items()
    }
