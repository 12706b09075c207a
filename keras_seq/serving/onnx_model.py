"""Export of a run to ONNX graphs that run without Keras and TensorFlow."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_seq import __version__, runtime
from keras_seq.inference.search import search_config
from keras_seq.run import Run
from keras_seq.run.models import load_ensemble, open_ensemble
from keras_seq.scoring import bleu
from keras_seq.serving.http.versions import RECORD_NAME
from keras_seq.serving.onnx_graphs import OnnxGraph, require_onnx
from keras_seq.serving.publishing import (
    check_destination,
    checkpoint_record,
    publish_directory,
)
from keras_seq.serving.signature_module import require_tensorflow
from keras_seq.serving.verification import require_equal
from keras_seq.settings import TASKS, SearchSettings
from keras_seq.storage import write_file
from keras_seq.text import FeatureTokenizer, InputError, Tokenizer, WordPieceTokenizer

QUANTIZATIONS = ("float32", "int8")
_PACKAGES = ("numpy", "onnxruntime", "sentencepiece")
# A proof of thousands of long texts may take minutes.
_PATIENCE = 3600


class OnnxParts(NamedTuple):
    """What the ONNX export of a task consists of.

    Attributes:
        graphs: The graphs by name.
        vocabularies: The vocabulary of texts; for a model that generates text from text, those of
            source and target; none for a model of recordings that generates no text.
        settings: Entries of `model.json`, as `keras_seq.runtime` reads them.
    """

    graphs: Iterable[tuple[str, OnnxGraph]]
    vocabularies: Sequence[Tokenizer]
    settings: dict[str, Any]


def export_onnx(
    run: Run,
    destination: str | os.PathLike[str],
    *,
    which: str | int = "best",
    ensemble: Sequence[str | os.PathLike[str]] = (),
    quantization: str = "float32",
    verify: int = 100,
    notice: Callable[[str], None] | None = None,
    **search: Any,
) -> Path:
    """Atomically exports a run to a directory of ONNX graphs. Returns `destination`.

    The directory contains the graphs, the vocabularies, the settings (`model.json`), the step of
    the weights (`checkpoint.json`), and `runtime.py`, which runs them with numpy, onnxruntime and
    sentencepiece alone. `requirements.txt` has their versions, and the Dockerfile makes a container
    that answers over HTTP. See `keras_seq.runtime.load`.

    Args:
        run: An opened run with weights, trained on any backend.
        destination: The directory to create; it must not exist.
        which: `"best"`, `"latest"`, or the step of a stored checkpoint.
        ensemble: Directories of other runs with the same vocabularies, which answer together.
        quantization: `"float32"`, or `"int8"` for weights of 8 bits, which onnxruntime quantizes.
        verify: Number of lines of the run's validation text for which the float32 graphs, in a
            process without Keras, must return the outputs of the run. For int8, the change of the
            outputs is reported. 0 skips the verification.
        notice: Called with lines that report the progress.
        **search: Search settings that replace those of the run; see `SearchSettings`.

    Raises:
        InputError: A package is not installed, the run has no weights or a task that ONNX exports
            lack, `destination` exists or cannot be written, or the verification fails; nothing is
            published.
        SettingsError: A search setting is unknown or out of bounds.
        RuntimeError: Keras does not run on TensorFlow.
    """
    report = notice or (lambda line: None)
    require_tensorflow()
    if quantization not in QUANTIZATIONS:
        raise InputError(
            f"quantization: received {quantization!r}, expected one of {', '.join(QUANTIZATIONS)}"
        )
    require_onnx()
    destination = Path(destination)
    run.require_weights(which)
    check_destination(destination)
    settings = run.settings.with_search(search)
    if TASKS[settings.task].reads_sounds and ensemble:
        raise InputError("a model of recordings has no ensembles")
    if verify:
        # A copy from elsewhere has no validation text.
        run.valid_lines()
    runs = open_ensemble(run, ensemble, which, notice)
    model = load_ensemble(runs, which)
    exporter = TASKS[settings.task].exporter(run, settings)
    inputs = exporter.inputs()[:verify]
    expected = exporter.expected(model, inputs) if inputs else []

    def write(directory: Path) -> None:
        directory.mkdir()
        parts: OnnxParts = exporter.onnx(model)
        names = []
        for name, graph in parts.graphs:
            graph.save(directory / f"{name}.onnx")
            names.append(name)
        write_file(directory / RECORD_NAME, checkpoint_record(runs))
        _write_settings(directory, settings.task, settings.search.batch_size, parts, names)
        shutil.copyfile(runtime.__file__, directory / "runtime.py")
        _write_text_files(directory)
        if inputs:
            require_equal(inputs, _answers(directory, inputs), expected)
            noun = "recordings" if TASKS[settings.task].reads_sounds else "lines of text"
            report(f"{len(inputs)} validation {noun} come out as the run {exporter.verb} them")
        if quantization == "int8":
            for name in names:
                _quantize(directory / f"{name}.onnx")
            if inputs:
                references = run.valid_lines()[1][: len(inputs)]
                translates = settings.task == "translate"
                report(
                    _compare(
                        _answers(directory, inputs), expected, references if translates else ()
                    )
                )
        size = sum(file.stat().st_size for file in directory.iterdir())
        report(f"{size / 1e6:.1f} MB")

    return publish_directory(destination, write)


def search_settings(search: SearchSettings, tokenizer: Tokenizer) -> dict[str, Any]:
    """Returns the search settings as `keras_seq.runtime` reads them, with ids instead of text."""
    config = search_config(search, tokenizer)
    prefix = tokenizer.encode([search.prefix])[0] if search.prefix else []
    return {**asdict(config), "method": search.method, "prefix": prefix}


def _write_settings(
    directory: Path, task: str, batch_size: int, parts: OnnxParts, names: Sequence[str]
) -> None:
    stored: dict[str, Any] = {
        "format": runtime.FORMAT,
        "keras_seq": __version__,
        "task": task,
        "batch_size": batch_size,
        "grows": "grow" in names,
        **parts.settings,
    }
    for name, vocabulary in zip(("source", "target"), parts.vocabularies, strict=False):
        # A joint vocabulary is stored once.
        is_joint = name == "target" and vocabulary is parts.vocabularies[0]
        stored[name] = (
            stored["source"] if is_joint else _write_vocabulary(directory, name, vocabulary)
        )
    content = json.dumps(stored, ensure_ascii=False, indent=1) + "\n"
    write_file(directory / runtime.MODEL_FILE, content.encode("utf-8", "surrogatepass"))


def _write_vocabulary(directory: Path, name: str, tokenizer: Tokenizer) -> dict[str, Any]:
    if isinstance(tokenizer, WordPieceTokenizer):
        write_file(directory / f"{name}.json", tokenizer.to_bytes())
        return {"file": f"{name}.json"}
    stored: dict[str, Any] = {"file": f"{name}.model"}
    if isinstance(tokenizer, FeatureTokenizer):
        stored["features"] = list(tokenizer.features.names)
        stored["feature_separator"] = tokenizer.separator
        tokenizer = tokenizer.source
    rules = tokenizer.rules
    stored |= {"form": rules.form, "lowercase": rules.lowercase, "separator": rules.separator}
    write_file(directory / stored["file"], tokenizer.to_bytes())
    return stored


def _answers(directory: Path, inputs: Sequence[Any]) -> list[str]:
    """Answers texts or recordings in a new process, which imports neither Keras nor TensorFlow."""
    with tempfile.TemporaryDirectory() as folder:
        lines = []
        for number, one in enumerate(inputs):
            if isinstance(one, np.ndarray):
                np.save(f"{folder}/{number}.npy", one)
                one = f"{folder}/{number}.npy"
            lines.append(f"{one}\n")
        result = subprocess.run(
            # -P keeps the directory of the script off the import path.
            [sys.executable, "-P", str(directory / "runtime.py"), str(directory)],
            input="".join(lines).encode("utf-8", "replace"),
            capture_output=True,
            env={**os.environ, "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            timeout=_PATIENCE,
            check=False,
        )
    if result.returncode:
        said = result.stderr.decode("utf-8", "replace").splitlines()
        reason = next((line for line in reversed(said) if line.strip()), "no message")
        raise InputError(
            f"the export does not run by itself (exit code {result.returncode}): {reason[:500]}"
        )
    return result.stdout.decode().split("\n")[:-1]


def _quantize(path: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    smaller = path.with_suffix(".int8")
    quantize_dynamic(path, smaller, weight_type=QuantType.QInt8)
    smaller.replace(path)


def _compare(outputs: Sequence[str], expected: Sequence[str], references: Sequence[str]) -> str:
    different = sum(a != b for a, b in zip(expected, outputs, strict=True))
    if not references:
        return f"int8: {different} of {len(outputs)} lines differ"
    before, after = (bleu(lines, [references]).value for lines in (expected, outputs))
    return (
        f"int8: BLEU {after:.2f} on them, {after - before:+.2f} against {before:.2f}; "
        f"{different} lines differ"
    )


def _write_text_files(directory: Path) -> None:
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    requirements = "".join(f"{name}=={version}\n" for name, version in versions.items())
    write_file(directory / "requirements.txt", requirements.encode())
    write_file(directory / "Dockerfile", _DOCKERFILE.encode())
    write_file(directory / "README.md", _README.encode())


_DOCKERFILE = """\
# A container that answers POST / with {"instances": ["text", ...]} on port 8000.
FROM python:3.12-slim
WORKDIR /model
COPY requirements.txt ./
RUN python -m pip install --no-cache-dir --no-compile -r requirements.txt
COPY . ./
USER nobody
EXPOSE 8000
CMD ["python", "runtime.py", "--host", "0.0.0.0", "--port", "8000"]
"""

_README = """\
# A model for onnxruntime

Exported by keras-seq. `runtime.py` runs it without Keras and TensorFlow. In this directory:

```bash
python -m pip install -r requirements.txt
python runtime.py < input.txt > output.txt
```

Each line of the input is a text, or the name of a WAV file for a model of recordings; line N of the
output is its answer.

In Python:

```python
import runtime

model = runtime.load(".")
print(model(["text"]))  # the best answer to each text; for recordings, a list of float arrays
```

As a server, `docker build -t model . && docker run -p 8000:8000 model`, or without a container
`python runtime.py --port 8000`:

```bash
curl http://localhost:8000 -d '{"instances": ["text"]}'
```
"""
