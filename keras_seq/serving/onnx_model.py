"""Export of a run to ONNX graphs that run without Keras and TensorFlow."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_seq import runtime
from keras_seq.run import Run
from keras_seq.serving.onnx_conversion import require_onnx, save_onnx
from keras_seq.serving.portable_model import load_portable_model
from keras_seq.serving.publishing import publish_directory
from keras_seq.storage import write_file
from keras_seq.text import InputError

_PACKAGES = ("numpy", "onnxruntime", "sentencepiece")
# A proof of thousands of long texts may take minutes.
_PATIENCE = 3600


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
            lack, ONNX lacks an operation of the model, `destination` exists or cannot be written,
            or the verification fails; nothing is published.
        SettingsError: A search setting is unknown or out of bounds.
        RuntimeError: Keras does not run on TensorFlow.
    """
    report = notice or (lambda line: None)
    require_onnx()
    destination = Path(destination)
    subject = load_portable_model(
        run,
        destination,
        which=which,
        ensemble=ensemble,
        quantization=quantization,
        verify=verify,
        notice=notice,
        search=search,
    )

    def write(directory: Path) -> None:
        directory.mkdir()
        parts = subject.parts("onnx")
        graphs = {}
        for name, graph in parts.graphs:
            subject.require_answer(graph)
            save_onnx(graph, directory / f"{name}.onnx")
            graphs[name] = graph
        answer = next(graph.answer for graph in graphs.values())
        files = subject.files(parts, answer=answer, grows="grow" in graphs)
        for name, content in files.items():
            write_file(directory / name, content)
        shutil.copyfile(runtime.__file__, directory / "runtime.py")
        _write_text_files(directory)
        if subject.inputs:
            report(subject.prove(_answers(directory, subject.inputs)))
        if quantization == "int8":
            for name in graphs:
                _quantize(directory / f"{name}.onnx")
            if subject.inputs:
                report(subject.compare(_answers(directory, subject.inputs)))
        size = sum(file.stat().st_size for file in directory.iterdir())
        report(f"{size / 1e6:.1f} MB")

    return publish_directory(destination, write)


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


def _write_text_files(directory: Path) -> None:
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    requirements = "".join(f"{name}=={version}\n" for name, version in versions.items())
    write_file(directory / "requirements.txt", requirements.encode())
    write_file(directory / "Dockerfile", _DOCKERFILE.encode())
    write_file(directory / "README.md", _README.encode())


_DOCKERFILE = """\
# A container that answers POST / with {"instances": ["text", ...]} on port 8000.
FROM debian:trixie-slim AS packages
RUN apt-get update && apt-get install --yes --no-install-recommends python3-pip
COPY requirements.txt ./
# onnxruntime contains its library twice. The copy for programs in C is deleted.
RUN python3 -m pip install --no-cache-dir --no-compile --target /packages -r requirements.txt \\
    && rm -f /packages/onnxruntime/capi/libonnxruntime.so.*

FROM debian:trixie-slim
RUN apt-get update && apt-get install --yes --no-install-recommends python3 \\
    && rm -rf /var/lib/apt/lists/*
COPY --from=packages /packages /packages
ENV PYTHONPATH=/packages
WORKDIR /model
COPY . ./
USER nobody
EXPOSE 8000
CMD ["python3", "runtime.py", "--host", "0.0.0.0", "--port", "8000"]
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

As a server that only this computer can reach,
`docker build -t model . && docker run -p 127.0.0.1:8000:8000 model`, or without a container
`python runtime.py --port 8000`:

```bash
curl http://localhost:8000 -d '{"instances": ["text"]}'
```
"""
