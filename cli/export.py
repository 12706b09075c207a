"""`keras-seq export`: a trained run to what serves it."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.checkpoint_option import Which
from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.search_options import with_search_options


@with_search_options
def export(
    run: Annotated[str, typer.Argument(help="Directory that train made.")],
    destination: Annotated[
        str,
        typer.Argument(
            help="savedmodel: directory of the versions; ctranslate2: new directory; "
            "keras: new file, NAME.keras."
        ),
    ],
    format_: Annotated[
        Literal["savedmodel", "ctranslate2", "keras"],
        typer.Option("--format", help="What to write."),
    ] = "savedmodel",
    which: Which = "best",
    ensemble: Annotated[
        list[str] | None,
        typer.Option(
            help="savedmodel: another run that translates together with it; may be given again."
        ),
    ] = None,
    text: Annotated[
        bool | None,
        typer.Option(
            "--text/--no-text",
            help="savedmodel: whether it takes text; without, ids, for servers that lack "
            "tensorflow-text's operations.",
        ),
    ] = None,
    quantize: Annotated[
        str | None, typer.Option(help="ctranslate2: float32, int8, int16 or float16.")
    ] = None,
    verify: Annotated[
        int | None,
        typer.Option(
            min=0, help="Validation lines that must come out as translate gives them; 0: none."
        ),
    ] = None,
    *,
    search: dict[str, Any],
) -> None:
    """Export a run for serving: a SavedModel, text in and text out, by default."""
    from keras_seq.run import Run
    from keras_seq.text import InputError

    unfit = [
        f"--{key.replace('_', '-')}"
        for key, value, formats in (
            *((key, value, {"savedmodel"}) for key, value in search.items()),
            ("ensemble", ensemble or None, {"savedmodel"}),
            ("text", text, {"savedmodel"}),
            ("quantize", quantize, {"ctranslate2"}),
            ("verify", verify, {"savedmodel", "ctranslate2"}),
        )
        if value is not None and format_ not in formats
    ]
    if unfit:
        raise InputError(f"{', '.join(unfit)}: not for --format {format_}")
    # Only TensorFlow writes a SavedModel; the weights are the same on every backend.
    os.environ["KERAS_BACKEND"] = "tensorflow"
    opened = Run.open(run, notice=notice)
    if format_ == "ctranslate2":
        opened.require_task("translate")
    opened.require_weights(which)
    lines = 100 if verify is None else verify
    if format_ == "savedmodel":
        serving = import_quietly("keras_seq.serving.saved_model")
        path = serving.export_saved_model(
            opened,
            destination,
            which=which,
            ensemble=ensemble or (),
            text=text is not False,
            verify=lines,
            notice=notice,
            **search,
        )
    elif format_ == "ctranslate2":
        if lines:
            # What is compared with.
            import_quietly("keras_seq.inference.translator")
        serving = import_quietly("keras_seq.serving.ctranslate2_model")
        path = serving.export_ctranslate2(
            opened,
            destination,
            which=which,
            quantization=quantize or "float32",
            verify=lines,
            notice=notice,
        )
    else:
        path = import_quietly("keras_seq.serving.keras_file").export_keras(
            opened, destination, which=which
        )
    emit([str(path)])
