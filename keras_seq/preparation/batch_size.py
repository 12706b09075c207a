"""Finds the largest token budget of a batch that fits into the memory of a device."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

import keras_seq
from keras_seq.data import TokenCorpus
from keras_seq.operating_system import CRASHED, KILLED, memory_of
from keras_seq.process.devices import Devices
from keras_seq.process.memory import free_memory
from keras_seq.run import Run
from keras_seq.text import InputError, Notice

_FIRST = 1024
_LARGEST = 1 << 20
# Steps of the binary search after the last doubling.
_HALVINGS = 2
# Share of the free memory that a trial may use. Validation and other processes need the rest.
_MEMORY_SHARE = 0.8
# Share of the largest budget that is used, because training takes a little more than one batch.
_BUDGET_SHARE = 0.8
_OUT_OF_MEMORY = 4
_OUT_OF_MEMORY_WORDS = (
    "RESOURCE_EXHAUSTED",
    "bad_alloc",
    "out of memory",
    "Cannot allocate",
    # An error of oneDNN, which TensorFlow uses on CPUs.
    "could not create a ",
)
_START = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from keras_seq.process.signals import end_with_stdin; end_with_stdin(); "
    "from keras_seq.training.batch_size_trial import main; sys.exit(main())"
)


def choose_batch_size(run: Run, devices: Devices, notice: Notice) -> None:
    """Sets `training.batch_tokens` of a run to the largest budget that fits.

    A run with a checkpoint keeps its budget. This process must hold the lock of the run, and must
    not have used its device yet. Raises InputError if not even the smallest budget fits, or a trial
    fails for a different reason.
    """
    training = run.settings.training
    if run.checkpoints.steps:
        notice(f"--batch-tokens auto: training.batch_tokens stays {training.batch_tokens:,}")
        return
    if devices.together:
        raise InputError(
            "--batch-tokens auto: received several hosts, expected one: give the number found on "
            "one host"
        )
    corpus = TokenCorpus.open(run.train_directory)
    # One batch with all pairs is the largest useful one.
    all_tokens = int((np.maximum(corpus.source_lengths, corpus.target_lengths) + 1).sum())
    largest = max(_FIRST, min(all_tokens, _LARGEST))
    fits = functools.partial(_fits, run.path, devices)
    budget = largest_budget(fits, notice, largest=largest)
    if training.effective_batch_tokens is not None:
        budget = min(budget, training.effective_batch_tokens)
    notice(f"--batch-tokens auto: training.batch_tokens = {budget:,}")
    training = training.model_copy(update={"batch_tokens": budget})
    run.update_settings(run.settings.model_copy(update={"training": training}))


def largest_budget(
    fits: Callable[[int], bool], notice: Notice, first: int = _FIRST, largest: int = _LARGEST
) -> int:
    """Binary search for the largest budget that fits, minus a 20 % margin.

    Raises InputError if `first` does not fit.

    Example:

    >>> largest_budget(lambda budget: budget <= 5000, notice=lambda line: None)
    3276
    """

    def test(budget: int) -> bool:
        success = fits(budget)
        notice(f"a batch of {budget:,} tokens {'fits' if success else 'does not fit'}")
        return success

    if not test(first):
        raise InputError(
            f"--batch-tokens auto: not even a batch of {first:,} tokens fits: take a smaller "
            "model, or lower data.max_source_length and data.max_target_length"
        )
    good, bad = first, largest + 1
    while good < largest < bad:
        doubled = min(2 * good, largest)
        good, bad = (doubled, bad) if test(doubled) else (good, doubled)
    if bad > largest:
        return good
    for _ in range(_HALVINGS):
        middle = (good + bad) // 2
        good, bad = (middle, bad) if test(middle) else (good, middle)
    return max(first, int(_BUDGET_SHARE * good))


def _fits(path: Path, devices: Devices, budget: int) -> bool:
    package = str(Path(keras_seq.__file__).resolve().parents[1])
    arguments = [str(path), str(budget), json.dumps(asdict(devices))]
    # The trial process ends when its stdin is closed, so it cannot outlive this process.
    read_end, write_end = os.pipe()
    with open(read_end, "rb") as stdin, open(write_end, "wb"):
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, package, *arguments],
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={"TF_CPP_MIN_LOG_LEVEL": "3"} | os.environ,
        )
        try:
            killed = _watch(process)
            _, errors = process.communicate()
        finally:
            process.kill()
            process.wait()
    if process.returncode == 0:
        return True
    # The kernel kills processes that run out of memory.
    if killed or process.returncode in (_OUT_OF_MEMORY, KILLED):
        return False
    # Libraries that run out of memory crash with all kinds of messages. A smaller batch did not
    # crash, so this one is too large; only a crash with the first one may have another reason.
    too_large = budget > _FIRST or any(words in errors for words in _OUT_OF_MEMORY_WORDS)
    if process.returncode in CRASHED and too_large:
        return False
    raise InputError(
        f"--batch-tokens auto: a batch of {budget:,} tokens: exit code {process.returncode}: "
        + errors.strip().split("\n")[-1][:300]
    )


def _watch(process: subprocess.Popen[str]) -> bool:
    """Waits for a process. Kills it, and returns True, if it takes too much memory."""
    limit = _MEMORY_SHARE * free_memory()
    while process.poll() is None:
        if memory_of(process.pid) > limit:
            process.kill()
            process.wait()
            return True
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    return False
