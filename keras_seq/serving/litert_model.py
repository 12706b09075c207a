"""Export of a run to one file for LiteRT, for phones and small computers."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from keras_seq import litert
from keras_seq.run import Run
from keras_seq.serving.litert_conversion import convert_to_litert, require_litert
from keras_seq.serving.portable_model import load_portable_model
from keras_seq.serving.publishing import publish_directory
from keras_seq.text import InputError


def export_litert(
    run: Run,
    destination: str | os.PathLike[str],
    *,
    which: str | int = "best",
    ensemble: Sequence[str | os.PathLike[str]] = (),
    quantization: str = "float32",
    max_input: float | None = None,
    verify: int = 100,
    notice: Callable[[str], None] | None = None,
    **search: Any,
) -> Path:
    """Atomically exports a run to one file for LiteRT. Returns `destination`.

    The file has one signature, with fixed shapes, for one text or recording at a time; the search
    is part of it. The vocabularies and the settings (`model.json`) follow the model as a zip
    archive in the same file, which `unzip` reads. See `keras_seq.litert.load`.

    Args:
        run: An opened run with weights, trained on any backend.
        destination: The file to create, `NAME.tflite`; it must not exist.
        which: `"best"`, `"latest"`, or the step of a stored checkpoint.
        ensemble: Directories of other runs with the same vocabularies, which answer together.
        quantization: `"float32"`, or `"int8"` for weights of 8 bits.
        max_input: The longest input, in tokens or in seconds; a longer one is truncated, and a
            shorter one costs as much. By default the maximum of the run. A detector of wake words
            has none, because it reads streams.
        verify: Number of lines of the run's validation text for which the float32 file must return
            the outputs of the run. Longer lines than `max_input` are skipped. For int8, the change
            of the outputs is reported. 0 skips the verification.
        notice: Called with lines that report the progress.
        **search: Search settings that replace those of the run; see `SearchSettings`.

    Raises:
        InputError: A package is not installed, the run has no weights, LiteRT lacks an operation of
            the model, `max_input` is out of bounds, `destination` exists, has another ending or
            cannot be written, or the verification fails; nothing is published.
        SettingsError: A search setting is unknown or out of bounds.
        RuntimeError: Keras does not run on TensorFlow.
    """
    report = notice or (lambda line: None)
    require_litert()
    destination = Path(destination)
    if destination.suffix != ".tflite":
        raise InputError(f"{destination}: expected a name that ends in .tflite")
    subject = load_portable_model(
        run,
        destination,
        which=which,
        ensemble=ensemble,
        quantization=quantization,
        verify=verify,
        notice=notice,
        search=search,
        max_input=max_input,
    )
    parts = subject.parts("litert", subject.exporter.longest_input(max_input))
    ((_, graph),) = parts.graphs
    subject.require_answer(graph)

    def write(path: Path) -> None:
        for kind in ("float32", "int8")[: 1 + (quantization == "int8")]:
            content = convert_to_litert(graph, subject.model.variables, kind)
            path.write_bytes(content)
            # `ZipFile` would replace a file that it cannot open by a name.
            with path.open("r+b") as stream, zipfile.ZipFile(stream, "a") as archive:
                for name, file in subject.files(parts, answer=graph.answer, batch_size=1).items():
                    archive.writestr(name, file)
            if subject.inputs:
                outputs = litert.load(path)(subject.inputs)
                report(subject.prove(outputs) if kind == "float32" else subject.compare(outputs))
        report(f"{path.stat().st_size / 1e6:.1f} MB")

    return publish_directory(destination, write)
