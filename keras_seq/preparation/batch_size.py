"""The largest token budget of a batch that fits into a device's memory, found by trying.

Each try is a process of its own: what runs out of memory there takes nothing with it, and
leaves this one's device as it was.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

import keras_seq
from keras_seq.data import TokenCorpus
from keras_seq.run import Run, is_run
from keras_seq.runtime.devices import Devices
from keras_seq.text import InputError

Notice = Callable[[str], None]

_FIRST = 1024
_LARGEST = 1 << 20
# After the last doubling: a budget within a quarter of the largest that fits.
_HALVINGS = 2
# Of the memory that is free, so that validation and others have room.
_SHARE = 0.8
# A training takes a little more than its largest batch alone.
_SPARE = 0.8
_OUT_OF_MEMORY = 4
_OUT_OF_MEMORY_WORDS = (
    "RESOURCE_EXHAUSTED",
    "bad_alloc",
    "out of memory",
    "Cannot allocate",
    # Of oneDNN, which TensorFlow multiplies matrices with on a processor.
    "could not create a ",
)
_START = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from keras_seq.runtime.signals import end_with_stdin; end_with_stdin(); "
    "from keras_seq.training.batch_size_trial import main; sys.exit(main())"
)


def known_budget(directory: str | os.PathLike[str]) -> int | None:
    """The budget of the run in a directory, None where there is none."""
    with contextlib.suppress(InputError):
        if is_run(Path(directory)):
            return Run.open(directory).settings.training.batch_tokens
    return None


def choose_batch_size(run: Run, devices: Devices, notice: Notice) -> None:
    """Gives a run the largest budget that fits; one that has a checkpoint keeps its own.

    Args:
        run: Prepared, and locked by this process, which has not used its device yet.
        devices: What it will be trained on.
        notice: Called with a line for each try.

    Raises:
        InputError: Not even the smallest budget fits, or a try went wrong otherwise.
    """
    training = run.settings.training
    if run.checkpoints.steps:
        notice(f"--max-batch auto: training.batch_tokens stays {training.batch_tokens:,}")
        return
    if devices.together:
        raise InputError("--max-batch auto: with several hosts, give the number found on one")
    corpus = TokenCorpus.open(run.train_directory)
    # With all pairs in one batch a higher budget changes nothing.
    all_tokens = int((np.maximum(corpus.source_lengths, corpus.target_lengths) + 1).sum())
    largest = max(_FIRST, min(all_tokens, _LARGEST))
    found = largest_budget(lambda budget: _fits(run.path, budget, devices), notice, largest=largest)
    if training.effective_batch_tokens is not None:
        found = min(found, training.effective_batch_tokens)
    notice(f"--max-batch auto: training.batch_tokens = {found:,}")
    training = training.model_copy(update={"batch_tokens": found})
    run.update_settings(run.settings.model_copy(update={"training": training}))


def largest_budget(
    fits: Callable[[int], bool], notice: Notice, first: int = _FIRST, largest: int = _LARGEST
) -> int:
    """A budget that fits with a fifth to spare, from 0.64 of the largest that does.

    Args:
        fits: Whether a budget does.
        notice: Called with a line for each try.
        first: The first that is tried.
        largest: Where to stop.

    Raises:
        InputError: The first does not fit.

    Example:

    >>> largest_budget(lambda budget: budget <= 5000, notice=lambda line: None)
    3276
    """

    def said(budget: int) -> bool:
        good = fits(budget)
        notice(f"a batch of {budget:,} tokens {'fits' if good else 'does not fit'}")
        return good

    if not said(first):
        raise InputError(
            f"--max-batch auto: not even a batch of {first:,} tokens fits: take a smaller model, "
            "or lower data.max_source_length and data.max_target_length"
        )
    good, bad = first, None
    while bad is None and good < largest:
        more = min(2 * good, largest)
        if said(more):
            good = more
        else:
            bad = more
    for _ in range(_HALVINGS if bad is not None else 0):
        assert bad is not None
        middle = (good + bad) // 2
        if said(middle):
            good = middle
        else:
            bad = middle
    return good if bad is None else max(first, int(_SPARE * good))


def _fits(path: Path, budget: int, devices: Devices) -> bool:
    package = str(Path(keras_seq.__file__).resolve().parents[1])
    arguments = [str(path), str(budget), json.dumps(asdict(devices))]
    # A try must not outlive this process, not even one that a signal ends while it starts the try.
    nothing, held = os.pipe()
    with open(nothing, "rb") as nothing_comes, open(held, "wb"):
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, package, *arguments],
            stdin=nothing_comes,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={"TF_CPP_MIN_LOG_LEVEL": "3"} | os.environ,
        )
        try:
            killed = _watch(process)
            _, said = process.communicate()
        finally:
            process.kill()
            process.wait()
    if process.returncode == 0:
        return True
    # A process that the kernel kills has run out of memory, too.
    if killed or process.returncode in (_OUT_OF_MEMORY, -signal.SIGKILL):
        return False
    # Libraries that find no memory may crash, having said so or not to the end.
    if process.returncode < 0 and any(words in said for words in _OUT_OF_MEMORY_WORDS):
        return False
    words = said.strip().split("\n")[-1][:300]
    raise InputError(
        f"--max-batch auto: a batch of {budget:,} tokens: exit code {process.returncode}: {words}"
    )


def _watch(process: subprocess.Popen[str]) -> bool:
    """Waits for the end; kills what takes more than its share of this machine's memory."""
    limit = _SHARE * _free_kilobytes()
    while process.poll() is None:
        if _kilobytes(f"/proc/{process.pid}/status", "VmRSS:", default=0.0) > limit:
            process.kill()
            process.wait()
            return True
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    return False


def _free_kilobytes() -> float:
    """What the machine has, or less where a container may use less."""
    free = _kilobytes("/proc/meminfo", "MemAvailable:", default=float("inf"))
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        most, used = ((group / f"memory.{name}").read_text() for name in ("max", "current"))
        free = min(free, (int(most) - int(used)) / 1024)
    return free


def _kilobytes(file: str, name: str, default: float) -> float:
    """A number that the kernel gives, `default` where there is none."""
    with contextlib.suppress(OSError, ValueError), open(file, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(name):
                return float(line.split()[1])
    return default
