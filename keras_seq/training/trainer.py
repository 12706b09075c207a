"""`train`: from text files to a run directory with a model."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import datetime

from keras_seq.cluster import Cluster, start_cluster
from keras_seq.preparation import Resume, open_or_prepare
from keras_seq.run import Run
from keras_seq.runtime.devices import Devices
from keras_seq.settings import Settings
from keras_seq.text import InputError
from keras_seq.training.errors import TrainingError
from keras_seq.training.loop import TrainingLoop
from keras_seq.training.result import TrainingResult
from keras_seq.training.stopping import SignalStop

Notice = Callable[[str], None]


def train(
    settings: Settings,
    directory: str | os.PathLike[str] | Run,
    *,
    resume: Resume = "auto",
    overwrite: bool = False,
    notice: Notice | None = None,
    stop_at: datetime | None = None,
    devices: Devices | None = None,
) -> TrainingResult:
    """Trains a model from text files, and leaves it in a run directory.

    Called again with the same arguments it goes on where an earlier call was
    stopped or killed, and ends with the weights of a training on as many cores that
    never was. What is trained already is not trained again. Limits and intervals may
    change from one call to the next; other settings and the text may not.

    Args:
        settings: With the training files in `settings.data`; see `load_settings`.
        directory: A new or empty directory, one with a run, or a run that
            `prepare_run` made.
        resume: `"auto"` goes on with a run and begins where there is none,
            `"never"` refuses a run, `"require"` refuses a directory without a
            checkpoint.
        overwrite: Whether an earlier run in the directory is deleted.
        notice: Called with a line for each thing done; by default it is
            printed on standard error.
        stop_at: When to save and end, before a machine's time is over; the next call
            goes on. In the main thread of a POSIX system only.
        devices: What to train on, and the hosts that share the training; by default
            all GPUs or TPUs of this host, or its processor. Nothing may have been computed
            by Keras before it is used with hosts, or with several CPUs.

    Returns:
        What the training came to. The model is in the directory;
        `Translator.load(directory)` uses it.

    Raises:
        InputError: Wrong files, a directory that cannot be used, a run that was begun
            with other settings or another text, devices or hosts that are not there.
        TrainingError: Memory ran out, or gradients are not finite any more.
        KeyboardInterrupt: SIGINT came; what was trained is saved.
        SystemExit: SIGTERM came, code 143, or `stop_at`, code 142; what was trained is saved.

    Example:

    >>> import keras_seq
    >>> settings = keras_seq.load_settings(  # doctest: +SKIP
    ...     preset="transformer-tiny",
    ...     overrides={"data.pairs": "pairs.tsv", "training.max_minutes": 30},
    ... )
    >>> keras_seq.train(settings, "runs/mine")  # doctest: +SKIP
    """
    notice = notice or _to_stderr
    devices = devices or Devices()
    if devices.host > 0:
        return follow(directory, devices, notice)
    if isinstance(directory, Run):
        run = directory
    else:
        run = open_or_prepare(
            settings, directory, resume=resume, overwrite=overwrite, notice=notice
        )
    run.lock()
    try:
        run.check_writable()
        # Only now, for then the other hosts find the run prepared; and before signals are ours, for
        # JAX and TensorFlow take SIGTERM to themselves when hosts meet.
        cluster = start_cluster(devices, notice)
        with SignalStop(stop_at, cluster.hosts > 1) as stop:
            return _train(run, notice, stop, cluster)
    finally:
        run.unlock()


def follow(
    directory: str | os.PathLike[str] | Run, devices: Devices, notice: Notice
) -> TrainingResult:
    """What another host than the first does: the same, without writing or saying anything.

    Args:
        directory: The run, which the first host prepares.
        devices: What to train on, and the hosts.
        notice: Called with a line while it waits.

    Returns:
        What the training came to.
    """
    path = directory.path if isinstance(directory, Run) else directory
    cluster = start_cluster(devices, notice)
    run = Run.open(path, writable=False)
    with SignalStop(together=True) as stop:
        return _train(run, lambda line: None, stop, cluster)


def _train(run: Run, notice: Notice, stop: SignalStop, cluster: Cluster) -> TrainingResult:
    try:
        with cluster.scope():
            return TrainingLoop(run, notice, stop, cluster).fit()
    except BaseException as error:
        # A backend that was interrupted while it compiles may fail in a way of its own then.
        ended = stop.raised or error
        if isinstance(ended, (KeyboardInterrupt, SystemExit)):
            saved = run.checkpoints.latest_step
            notice(
                f"{stop.reason}; "
                + ("nothing was trained yet" if saved is None else f"step {saved:,} is saved")
                + ": the same command goes on from there"
            )
            raise ended from None
        # Not one of ours: a collective operation that has lost a partner.
        if cluster.hosts == 1 or isinstance(error, (TrainingError, InputError, OSError)):
            raise
        saved = run.checkpoints.latest_step
        raise TrainingError(
            f"{run.path}: another host ended or cannot be reached ({type(error).__name__}): "
            + ("nothing is saved" if saved is None else f"step {saved:,} is saved")
            + "; the same commands go on from there"
        ) from error


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
