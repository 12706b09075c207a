"""`keras-seq train`: text files to a run directory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.signals import leaves_at_once, sigterm_exits
from keras_seq_cli.text_options import with_text_options

if TYPE_CHECKING:
    from keras_seq.runtime.devices import Devices


@with_text_options
def train(
    run: Annotated[
        str, typer.Argument(help="Directory to make, or to go on in: model, vocabulary, scores.")
    ],
    given: dict[str, Any],
    prepared_text: Annotated[
        str | None,
        typer.Option("--prepared", help="Directory that prepare made, in place of all text."),
    ] = None,
    from_run: Annotated[
        str | None, typer.Option(help="Run whose best weights, and vocabulary, are the start.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Named settings, or hub:NAME of an encoder; chosen by the text's size if absent."
        ),
    ] = None,
    crf: Annotated[
        bool, typer.Option("--crf", help="Choose all tags of a text together (tag).")
    ] = False,
    settings: Annotated[
        str | None, typer.Option(help="TOML file of settings, over the preset.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting; may be given again."),
    ] = None,
    max_minutes: Annotated[float | None, typer.Option(help="Stop after so many minutes.")] = None,
    max_steps: Annotated[int | None, typer.Option(help="Stop after so many updates.")] = None,
    max_epochs: Annotated[
        int | None, typer.Option(help="Stop after so many passes over the text.")
    ] = None,
    max_batch: Annotated[
        str | None,
        typer.Option(
            metavar="TOKENS|auto", help="Token budget of a batch; auto: the largest that fits."
        ),
    ] = None,
    stop_after: Annotated[
        float | None,
        typer.Option(help="Save and exit after so many minutes of this process, to go on later."),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="<float32|bfloat16|float16|auto>",
            help="Arithmetic of the training; auto: what is fastest here.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    backend: Annotated[
        Literal["tensorflow", "jax"] | None,
        typer.Option(help="What computes; KERAS_BACKEND, or tensorflow, if absent."),
    ] = None,
    device: Annotated[
        Literal["cpu", "gpu", "tpu"] | None,
        typer.Option(help="Kind of device; the best if absent."),
    ] = None,
    devices: Annotated[
        int | None, typer.Option(help="How many of this host's; all if absent, of CPUs one.")
    ] = None,
    model_devices: Annotated[
        int, typer.Option(help="Devices that share one copy of the weights (jax).")
    ] = 1,
    hosts: Annotated[
        str | None,
        typer.Option(help="NAME:PORT,NAME:PORT,...: all hosts, which see the same files."),
    ] = None,
    host: Annotated[
        int, typer.Option(help="This host's place in --hosts, from 0; the first one writes.")
    ] = 0,
    resume: Annotated[
        Literal["auto", "never", "require"],
        typer.Option(help="Go on with the run that is there: if there is one, never, or must."),
    ] = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be trained, and stop.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete the run that is there.")
    ] = False,
) -> None:
    """Train a model on pairs of sentences, on lines of text, or on labelled lines.

    The same command again goes on where the last one was stopped or killed.
    """
    import contextlib
    import os
    import tempfile
    from datetime import datetime, timedelta

    from keras_seq.preparation import (
        check_directory,
        find_run,
        open_or_prepare,
        prepare_run,
        resolve_settings,
    )
    from keras_seq.preparation.batch_size import choose_batch_size
    from keras_seq.runtime.devices import Devices, check_backend
    from keras_seq.runtime.threads import configure_training_threads

    if stop_after is not None and not 0 < stop_after < 10**7:
        raise typer.BadParameter("must be a number of minutes", param_hint="'--stop-after'")
    stop_at = None if stop_after is None else datetime.now() + timedelta(minutes=stop_after)
    flags = {
        **given,
        "model.crf": "true" if crf else None,
        "data.prepared": prepared_text,
        "training.from_run": from_run,
        "training.max_minutes": max_minutes,
        "training.max_steps": max_steps,
        "training.max_epochs": max_epochs,
        "training.batch_tokens": max_batch,
        "training.precision": precision,
        "seed": seed,
    }
    if backend is not None:
        os.environ["KERAS_BACKEND"] = backend
    # Now, for the text may take long to prepare.
    check_backend(os.environ.get("KERAS_BACKEND"))
    used = Devices(
        device, devices, model_devices, tuple(hosts.split(",")) if hosts is not None else (), host
    )
    if used.kind in (None, "cpu") and used.count in (None, 1) and not used.together:
        configure_training_threads()
    if used.host > 0:
        # The first host prepares the run, and tells.
        with sigterm_exits():
            training = import_quietly("keras_seq.training", _start(used))
            training.train_as_worker(run, used, notice)
        return
    find_batch = max_batch == "auto"
    if not dry_run:
        check_directory(run, resume=resume, overwrite=overwrite)
    earlier = None if overwrite else find_run(run)
    if find_batch:
        flags["training.batch_tokens"] = earlier and earlier.settings.training.batch_tokens
    resolved, counts = resolve_settings(
        preset=preset,
        file=settings,
        overrides=[
            *(set_ or []),
            *(f"{key}={value}" for key, value in flags.items() if value is not None),
        ],
        notice=notice,
        earlier=earlier,
    )
    if dry_run:
        with tempfile.TemporaryDirectory() as folder:
            prepared = prepare_run(resolved, f"{folder}/run", notice=notice, counts=counts)
            emit([import_quietly("keras_seq.training").plan(prepared)])
        return
    if used != Devices() and not find_batch:
        # Before the text is read, which may take long, but not without need before what is wrong
        # with it is said.
        import_quietly("keras_seq.training", _start(used))
    with sigterm_exits():
        prepared = open_or_prepare(
            resolved, run, resume=resume, overwrite=overwrite, notice=notice, counts=counts
        )
        if find_batch:
            # Before this process takes the device's memory.
            choose_batch_size(prepared, used, notice)
        # Only now, so that what is wrong with the text or the settings is said at once.
        training = import_quietly("keras_seq.training", _start(used))
        # Hosts end together: they have to take leave of each other.
        with contextlib.nullcontext() if used.hosts else leaves_at_once():
            result = training.train(
                prepared.settings, prepared, notice=notice, devices=used, stop_at=stop_at
            )
    emit([f"{run}: {result.score}"])


def _start(devices: Devices) -> Callable[[], None]:
    """What is done with the backend first of all."""

    def start() -> None:
        from keras_seq.cluster import initialize

        initialize(devices)

    return start
