"""`keras-seq export`: exports a run for serving."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly, without_log_lines
from keras_seq_cli.search_options import with_search_options
from keras_seq_cli.shared_options import Ensemble, Which


@with_search_options
def export(
    run: Annotated[str, typer.Argument(help="Run directory.")],
    destination: Annotated[
        str,
        typer.Argument(
            help="savedmodel: directory of the versions; ctranslate2, onnx: new directory; "
            "litert, keras: new file, NAME.tflite or NAME.keras."
        ),
    ],
    format_: Annotated[
        Literal["savedmodel", "ctranslate2", "onnx", "litert", "keras"],
        typer.Option("--format", help="Export format."),
    ] = "savedmodel",
    which: Which = "best",
    ensemble: Ensemble = None,
    ids_only: Annotated[
        bool,
        typer.Option(
            "--ids-only",
            help="savedmodel: accept token ids instead of text, for servers without "
            "tensorflow-text.",
        ),
    ] = False,
    quantize: Annotated[
        str | None,
        typer.Option(
            help="Quantization; of onnx and litert: float32 or int8; of ctranslate2 also int16 or "
            "float16."
        ),
    ] = None,
    max_input: Annotated[
        float | None,
        typer.Option(
            help="litert: longest input in tokens, of recordings in seconds; by default that of "
            "the run."
        ),
    ] = None,
    verify: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Validation lines for which the export must return the outputs of the run; 100 "
            "by default, 0 to skip.",
        ),
    ] = None,
    *,
    search: dict[str, Any],
) -> None:
    """Export a run for serving, by default as a SavedModel that maps text to text."""
    from keras_seq.run import Run

    formats: dict[str, tuple[str, ...]] = {
        name: ("savedmodel", "onnx", "litert") for name in search
    }
    if ensemble:
        formats["ensemble"] = ("savedmodel", "onnx", "litert")
    if ids_only:
        formats["ids_only"] = ("savedmodel",)
    if quantize is not None:
        formats["quantize"] = ("ctranslate2", "onnx", "litert")
    if max_input is not None:
        formats["max_input"] = ("litert",)
    if verify is not None:
        formats["verify"] = ("savedmodel", "ctranslate2", "onnx", "litert")
    _check_format(format_, formats)
    # Export with TensorFlow, which can load weights that were trained with any backend.
    os.environ["KERAS_BACKEND"] = "tensorflow"
    opened = Run.open(run, notice=notice)
    if format_ == "ctranslate2":
        opened.require_task("translate")
    opened.require_weights(which)
    lines = 100 if verify is None else verify
    path: Path
    if format_ == "savedmodel":
        path = import_quietly("keras_seq.serving.saved_model").export_saved_model(
            opened,
            destination,
            which=which,
            ensemble=ensemble or (),
            ids_only=ids_only,
            verify=lines,
            notice=notice,
            **search,
        )
    elif format_ == "ctranslate2":
        if lines:
            # Verification runs the model, so import Keras now and hide TensorFlow's log lines.
            import_quietly("keras_seq.inference.translator")
        path = import_quietly("keras_seq.serving.ctranslate2_model").export_ctranslate2(
            opened,
            destination,
            which=which,
            quantization=quantize or "float32",
            verify=lines,
            notice=notice,
        )
    elif format_ == "onnx":
        path = import_quietly("keras_seq.serving.onnx_model").export_onnx(
            opened,
            destination,
            which=which,
            ensemble=ensemble or (),
            quantization=quantize or "float32",
            verify=lines,
            notice=notice,
            **search,
        )
    elif format_ == "litert":
        module = import_quietly("keras_seq.serving.litert_model")
        # The converter explains its errors in many lines; ours is one.
        with without_log_lines():
            path = module.export_litert(
                opened,
                destination,
                which=which,
                ensemble=ensemble or (),
                quantization=quantize or "float32",
                max_input=max_input,
                verify=lines,
                notice=notice,
                **search,
            )
    else:
        path = import_quietly("keras_seq.serving.keras_file").export_keras(
            opened, destination, which=which
        )
    emit([str(path)])


def _check_format(format_: str, options: Mapping[str, Sequence[str]]) -> None:
    """Raises InputError for options that the export format does not support.

    Args:
        format_: The format.
        options: Maps the name of each option on the command line to the formats that support it.
    """
    from keras_seq.text import InputError

    unsupported = [
        f"--{name.replace('_', '-')}" for name, formats in options.items() if format_ not in formats
    ]
    if unsupported:
        raise InputError(f"{', '.join(unsupported)}: not for --format {format_}")
