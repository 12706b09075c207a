"""Trains a model on text files and saves it in a run directory."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Sequence
from datetime import datetime

import keras

from keras_seq.cluster import Cluster, start_cluster
from keras_seq.plugins import PluginError, added
from keras_seq.plugins.registry import call
from keras_seq.preparation import Resume, open_or_prepare
from keras_seq.process.devices import Devices
from keras_seq.run import Run
from keras_seq.settings import Settings, as_list
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
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> TrainingResult:
    """Trains a model on text files and saves it in a run directory.

    When it is called again with the same arguments after a stop or a kill, it resumes and produces
    weights bit-identical to an uninterrupted training on the same number of cores. A finished
    training is not repeated. Limits and intervals may change between calls; other settings and the
    text may not.

    Args:
        settings: Settings with the training files in `settings.data`; see `load_settings`.
        directory: A new or empty directory, the directory of a run, or a run that `prepare_run`
            created.
        resume: `"auto"` resumes a run if there is one, `"never"` raises an error if there is one,
            and `"require"` raises an error if there is no checkpoint.
        overwrite: Whether to delete an earlier run in the directory.
        notice: Called with each line for the user. By default, lines are printed to standard error.
        stop_at: Time at which to save and exit, for example before a batch queue ends the job.
            The next call resumes. Only in the main thread of a POSIX system.
        devices: The devices and hosts to train on. By default, all GPUs or TPUs of this host, or
            its CPU. With several hosts or several CPUs, Keras must not have computed anything
            before.
        callbacks: Callbacks of Keras. An epoch has as many updates as one pass over the training
            text. `on_test_end` receives the values of each validation.

    Returns:
        The result of the training. The model is in the directory; load it with
        `Translator.load(directory)`.

    Raises:
        InputError: If files are invalid, the directory cannot be used, the run was started with
            different settings or text, or devices or hosts are missing.
        TrainingError: If memory runs out, or gradients are no longer finite.
        KeyboardInterrupt: After SIGINT. All updates are saved.
        SystemExit: After SIGTERM, with code 143, or at `stop_at`, with code 142. All updates are
            saved.

    Example:

    >>> import keras_seq
    >>> settings = keras_seq.load_settings(  # doctest: +SKIP
    ...     preset="transformer-tiny",
    ...     overrides={"data.pairs": "pairs.tsv", "training.max_minutes": 30},
    ... )
    >>> keras_seq.train(settings, "runs/mine")  # doctest: +SKIP
    """
    notice = notice or to_stderr
    devices = devices or Devices()
    if devices.host_index > 0:
        return train_as_worker(directory, devices, notice)
    if isinstance(directory, Run):
        run = directory
    else:
        run = open_or_prepare(
            settings, directory, resume=resume, overwrite=overwrite, notice=notice
        )
    run.lock()
    try:
        run.check_writable()
        # Start the cluster only now, because the other hosts read the prepared run. Install signal
        # handlers afterwards, because JAX and TensorFlow install their own when hosts connect.
        cluster = start_cluster(devices, notice)
        with SignalStop(stop_at, cluster.hosts > 1) as stop:
            return _train(run, notice, stop, cluster, callbacks)
    finally:
        run.unlock()


def train_as_worker(
    directory: str | os.PathLike[str] | Run, devices: Devices, notice: Notice
) -> TrainingResult:
    """Takes part in the training of the first host, without writing or reporting anything.

    The first host prepares the run. `notice` is called with a line while this host waits for it.
    """
    path = directory.path if isinstance(directory, Run) else directory
    cluster = start_cluster(devices, notice)
    run = Run.open(path, writable=False)
    with SignalStop(together=True) as stop:
        return _train(run, lambda line: None, stop, cluster)


def _callbacks_of_plugins(run: Run) -> list[keras.callbacks.Callback]:
    """Makes the callbacks that `training.callbacks` names; only the first host has some."""
    names = as_list(run.settings.training.callbacks) if run.writable else []
    made = []
    for name in names:
        function = functools.partial(added("callback")[name], run)
        callback = call("callback", name, function)
        if not isinstance(callback, keras.callbacks.Callback):
            raise PluginError(
                f"the callback {name!r}: expected a Keras callback, received {callback!r}"
            )
        made.append(callback)
    return made


def _train(
    run: Run,
    notice: Notice,
    stop: SignalStop,
    cluster: Cluster,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> TrainingResult:
    def report_stop() -> None:
        saved = _saved(run, "nothing was trained yet")
        notice(f"{stop.reason}; {saved}: the same command resumes from there")

    stop.on_exit = report_stop
    try:
        with cluster.scope():
            callbacks = [*callbacks, *_callbacks_of_plugins(run)]
            return TrainingLoop(run, notice, stop, cluster, callbacks).fit()
    except BaseException as error:
        # A backend that was interrupted while compiling may raise an error of its own.
        cause = stop.raised or error
        if isinstance(cause, (KeyboardInterrupt, SystemExit)):
            report_stop()
            raise cause from None
        # With several hosts, other errors are collective operations that failed on a lost host.
        if cluster.hosts == 1 or isinstance(error, (TrainingError, InputError, OSError)):
            raise
        raise TrainingError(
            f"{run.path}: another host ended or cannot be reached ({type(error).__name__}): "
            f"{_saved(run, 'nothing is saved')}; the same commands resume from there"
        ) from error


def _saved(run: Run, nothing: str) -> str:
    # Without reading the pointer, whose error would replace the one to report.
    step = max(run.checkpoints.steps, default=None)
    return nothing if step is None else f"step {step:,} is saved"


def to_stderr(line: str) -> None:
    """Prints a line for the user. That it cannot be written must not end a training of hours."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
