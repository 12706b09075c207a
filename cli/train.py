"""`keras-seq train`: trains a model on text files and writes a run directory."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keras_seq_cli.optional_imports import hide_tensorflow
from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.shared_options import (
    DryRun,
    Overwrite,
    Preset,
    Seed,
    SetSettings,
    SettingsFile,
    list_overrides,
    with_text_options,
)
from keras_seq_cli.signals import exit_on_sigterm, exit_without_finalizers

if TYPE_CHECKING:
    from keras_seq.preparation.files import PairCounts
    from keras_seq.process.devices import Devices
    from keras_seq.settings import Settings


@with_text_options
def train(
    run: Annotated[str, typer.Argument(help="Run directory to create or resume.")],
    text_settings: dict[str, Any],
    prepared: Annotated[
        str | None, typer.Option(help="Directory made by keras-seq prepare, instead of text.")
    ] = None,
    from_run: Annotated[
        str | None,
        typer.Option(help="Run whose best weights and vocabulary initialize the training."),
    ] = None,
    preset: Preset = None,
    crf: Annotated[
        bool, typer.Option("--crf", help="Add a conditional random field, for tag.")
    ] = False,
    settings: SettingsFile = None,
    set_: SetSettings = None,
    max_minutes: Annotated[float | None, typer.Option(help="Stop after N minutes.")] = None,
    max_steps: Annotated[int | None, typer.Option(help="Stop after N updates.")] = None,
    max_epochs: Annotated[int | None, typer.Option(help="Stop after N epochs.")] = None,
    batch_tokens: Annotated[
        str | None,
        typer.Option(
            metavar="TOKENS|auto",
            help="Maximum tokens per batch; auto: the largest batch that fits in memory.",
        ),
    ] = None,
    stop_after: Annotated[
        float | None,
        typer.Option(help="Save and exit after N minutes of this process, to resume later."),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="<float32|bfloat16|float16|auto>",
            help="Floating-point precision of training; auto: the fastest on this device.",
        ),
    ] = None,
    seed: Seed = None,
    backend: Annotated[
        Literal["tensorflow", "jax", "torch"] | None,
        typer.Option(help="Keras backend; KERAS_BACKEND or tensorflow by default."),
    ] = None,
    device: Annotated[
        Literal["cpu", "gpu", "tpu"] | None,
        typer.Option(help="Kind of device; the best available by default."),
    ] = None,
    devices: Annotated[
        int | None,
        typer.Option(help="Devices to use on each host; by default all GPUs or TPUs, or one CPU."),
    ] = None,
    model_devices: Annotated[
        int, typer.Option(help="Devices that share one copy of the weights (jax).")
    ] = 1,
    hosts: Annotated[
        str | None,
        typer.Option(help="NAME:PORT,NAME:PORT,...: all hosts, which must see the same files."),
    ] = None,
    host_index: Annotated[
        int, typer.Option(help="Index of this host in --hosts, from 0; host 0 writes the run.")
    ] = 0,
    resume: Annotated[
        Literal["auto", "never", "require"],
        typer.Option(
            help="auto: resume an existing run or start a new one; never: require a new "
            "directory; require: require an existing run."
        ),
    ] = "auto",
    log: Annotated[
        list[str] | None,
        typer.Option(
            metavar="csv|mlflow|tensorboard|wandb",
            help="Also log the training there; repeatable. csv: RUN/log.csv.",
        ),
    ] = None,
    dry_run: DryRun = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a model on sentence pairs, lines of text, or labeled lines.

    If training was interrupted, the same command resumes it.
    """
    from keras_seq.preparation import check_directory, find_run, resolve_settings
    from keras_seq.process.devices import Devices, check_backend
    from keras_seq.process.experiment_tools import check_experiment_tools

    log = [name for value in log or [] for name in value.split(",")]
    check_experiment_tools(log)
    if stop_after is not None and not 0 < stop_after < 10**7:
        raise typer.BadParameter("must be a number of minutes", param_hint="'--stop-after'")
    stop_at = None if stop_after is None else datetime.now() + timedelta(minutes=stop_after)
    flags = {
        **text_settings,
        "model.crf": "true" if crf else None,
        "data.prepared": prepared,
        "training.from_run": from_run,
        "training.max_minutes": max_minutes,
        "training.max_steps": max_steps,
        "training.max_epochs": max_epochs,
        "training.batch_tokens": batch_tokens,
        "training.precision": precision,
        "seed": seed,
    }
    if backend is not None:
        os.environ["KERAS_BACKEND"] = backend
    # Preparing the text may take long, so check the backend first.
    check_backend(os.environ.get("KERAS_BACKEND"))
    if device == "cpu":
        # Keras reads it when it is imported; other backends do not use it.
        os.environ["KERAS_TORCH_DEVICE"] = "cpu"
    names = tuple(hosts.split(",")) if hosts is not None else ()
    used = Devices(device, devices, model_devices, names, host_index)
    _configure_threads(used)
    hide_tensorflow()
    if used.host_index > 0:
        _train_as_worker(run, used)
        return
    if not dry_run:
        check_directory(run, resume=resume, overwrite=overwrite)
    earlier = None if overwrite else find_run(run)
    find_batch = batch_tokens == "auto"
    if find_batch:
        flags["training.batch_tokens"] = earlier and earlier.settings.training.batch_tokens
    resolved, counts = resolve_settings(
        preset=preset,
        file=settings,
        overrides=list_overrides(set_, flags),
        notice=notice,
        earlier=earlier,
    )
    if dry_run:
        _print_plan(resolved, counts)
        return
    directory = {"resume": resume, "overwrite": overwrite, "counts": counts}
    _train(resolved, run, directory, used, find_batch=find_batch, stop_at=stop_at, log=log)


def _configure_threads(devices: Devices) -> None:
    from keras_seq.process.threads import configure_training_threads

    if devices.kind in (None, "cpu") and devices.count in (None, 1) and not devices.together:
        configure_training_threads()


def _train_as_worker(run: str, devices: Devices) -> None:
    """Trains on a worker host, after the first host has prepared the run."""
    with exit_on_sigterm():
        training = import_quietly("keras_seq.training", _initializer(devices))
        training.train_as_worker(run, devices, notice)


def _print_plan(settings: Settings, counts: PairCounts | None) -> None:
    from keras_seq.preparation import prepare_run

    with tempfile.TemporaryDirectory() as folder:
        prepared = prepare_run(settings, f"{folder}/run", notice=notice, counts=counts)
        emit([import_quietly("keras_seq.training").plan(prepared)])


def _train(
    settings: Settings,
    run: str,
    directory: dict[str, Any],
    devices: Devices,
    *,
    find_batch: bool,
    stop_at: datetime | None,
    log: Sequence[str],
) -> None:
    """Prepares a run, trains the model and prints the score.

    Args:
        settings: Resolved settings.
        run: The run directory.
        directory: Arguments of `open_or_prepare`.
        devices: The devices to train on.
        find_batch: Boolean, whether to search for the largest batch that fits.
        stop_at: When to save and exit; None for no limit.
        log: Tools to log the training to.
    """
    from keras_seq.preparation import open_or_prepare
    from keras_seq.preparation.batch_size import choose_batch_size
    from keras_seq.process.devices import Devices

    if devices != Devices() and not find_batch:
        # Check the devices first, because reading the text may take long. The default devices
        # need no check, because they always exist.
        import_quietly("keras_seq.training", _initializer(devices))
    with exit_on_sigterm():
        prepared = open_or_prepare(settings, run, notice=notice, **directory)
        if find_batch:
            # Run the trials before this process imports Keras and reserves device memory.
            choose_batch_size(prepared, devices, notice)
        # Import Keras only now, so that errors in text and settings are reported quickly.
        training = import_quietly("keras_seq.training", _initializer(devices))
        # With several hosts, run the finalizers, because the hosts must shut down together.
        with contextlib.nullcontext() if devices.hosts else exit_without_finalizers():
            result = training.train(
                prepared.settings,
                prepared,
                notice=notice,
                devices=devices,
                stop_at=stop_at,
                callbacks=training.experiment_loggers(log, prepared),
            )
    emit([f"{run}: {result.score}"])


def _initializer(devices: Devices) -> Callable[[], None]:
    """Returns a function that initializes the backend for the devices."""

    def initialize_backend() -> None:
        from keras_seq.cluster import initialize

        initialize(devices)

    return initialize_backend
