"""What lies beside the versions of an export: how to serve them, how to call them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from keras_seq.serving.exporter import Exporter
from keras_seq.storage import make_directory, reason, write_file
from keras_seq.text import InputError

_BATCHING = """\
# BatchingParameters of TensorFlow Serving, for --enable_batching --batching_parameters_file=...
# Requests that come at about the same time are translated together.

# Texts translated together; a request of more texts is refused.
max_batch_size {{ value: {max_batch} }}
# How long the first request of a batch waits for others.
batch_timeout_micros {{ value: 5000 }}
# Batches that may wait; what comes beyond them is refused at once.
max_enqueued_batches {{ value: 100 }}
# num_batch_threads: the number of processor cores, if not set.

# No allowed_batch_sizes: the graph takes any number of rows, and rows that fill a batch up would
# be translated for nothing.
# No pad_variable_length_inputs: a text is one string, whatever its length. The signature `ids`
# must not be padded by the server, which repeats a row's first id in place of 0.
"""

_SERVE = """\
# {model_name}

Written by {writer}. Each directory with a number for a name is a version: a SavedModel
that {what}. `serving` holds {files}; servers pass it over.

The commands below run in the directory that holds `{folder}`.

## Serve

With TensorFlow Serving's own program:

```bash
tensorflow_model_server --port=8500 --rest_api_port=8501 --model_name={shell_name} \\
    --model_base_path={shell_path} \\
    --enable_batching --batching_parameters_file={shell_path}/serving/batching.txt
```

or with its image:

```bash
docker run --rm -p 8500:8500 -p 8501:8501 -e MODEL_NAME={shell_name} \\
    -v {shell_path}:{shell_mount}:ro tensorflow/serving \\
    --enable_batching --batching_parameters_file={shell_mount}/serving/batching.txt
```

Nothing is to be built in: {operations}. The model was written by
TensorFlow {tensorflow_version}; a server of that version or a later one is the safe choice.

A new export becomes the next number. The server sees it by itself, replays the version's warm-up
requests, turns to it, and lets the old one go; clients notice nothing. To go back, move the newest
directory away.

Batching is for many clients at once. A lone client is served sooner without `--enable_batching`.
With it, a request may hold up to {max_batch} {rows}.
"""

_CALL = """\
## Call: REST

```bash
curl -d {shell_body} localhost:8501/v1/models/{url_name}:predict
```

In Python, without any package:

```python
import json
import urllib.request

body = json.dumps({{"instances": [{python_example}]}}).encode()
url = "http://localhost:8501/v1/models/{url_name}:predict"
with urllib.request.urlopen(url, body) as answer:
    for prediction in json.load(answer)["predictions"]:
        print({printed})
```

## Call: gRPC

With the package `tensorflow-serving-api`:

```python
import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

request = predict_pb2.PredictRequest()
request.model_spec.name = {python_name}
request.inputs["text"].CopyFrom(tf.make_tensor_proto([{python_example}]))
with grpc.insecure_channel("localhost:8500") as channel:
    service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    response = service.Predict(request, timeout=60)
for answer in tf.make_ndarray(response.outputs["{output}"]):
    print(answer.decode())
```

Each of the three answers with

```
{example_answer}
```

## What goes in, what comes out

{meaning}

Any number of rows may be sent, none included, and a row's answer does not depend on the others.
"""


_TEXT_OPERATIONS = """\
besides TensorFlow's own operations the graph has three of
tensorflow-text (`SentencepieceOp`, `SentencepieceTokenizeOp`, `SentencepieceDetokenizeOp`), and
TensorFlow Serving links tensorflow-text (2.20 at the time of writing)"""


def write_guide(
    base: Path,
    *,
    exporter: Exporter,
    model_name: str,
    max_batch: int,
    example: str,
    example_answer: str,
    tensorflow_version: str,
) -> Path:
    """Writes `serving/README.md` and `serving/batching.txt` beside the versions.

    The commands name no directory but that of `base`, so they stay true when
    it is copied to another machine.

    Args:
        base: Directory of the versions.
        exporter: Of the run's task.
        model_name: The name that clients call the model by.
        max_batch: Texts that a server may translate together.
        example: A text for the client lines.
        example_answer: What the model makes of it.
        tensorflow_version: The TensorFlow that wrote the SavedModel.

    Returns:
        The directory `serving`.

    Raises:
        ValueError: `model_name` is no name for a model server.
        InputError: The disk is full or read-only.
    """
    base = Path(base)
    serve = serving_section(
        base,
        model_name,
        writer="`keras-seq export`",
        what="takes text and gives text",
        files="this page and `batching.txt`",
        operations=_TEXT_OPERATIONS,
        rows="texts",
        max_batch=max_batch,
        tensorflow_version=tensorflow_version,
    )
    call = _CALL.format(
        output=exporter.outputs[0],
        printed=", ".join(f'prediction["{name}"]' for name in exporter.outputs),
        meaning=exporter.describe(),
        shell_body=shlex.quote(json.dumps({"instances": [example]}, ensure_ascii=False)),
        url_name=quote(model_name),
        python_name=json.dumps(model_name, ensure_ascii=False),
        # What JSON writes for text, Python reads as the same text.
        python_example=json.dumps(example, ensure_ascii=False),
        example_answer=example_answer,
    )
    batching = _BATCHING.format(max_batch=max_batch)
    return write_files(base, {"README.md": f"{serve}\n{call}", "batching.txt": batching})


def serving_section(
    base: Path,
    model_name: str,
    *,
    writer: str,
    what: str,
    files: str,
    operations: str,
    rows: str,
    max_batch: int,
    tensorflow_version: str,
) -> str:
    """The head of a guide, in Markdown: what lies there, and how a server is started.

    Args:
        base: Directory of the versions.
        model_name: The name that clients call the model by.
        writer: What made the export.
        what: What a version does.
        files: What lies in `serving`.
        operations: What a server has to have.
        rows: What a request has several of.
        max_batch: How many of them.
        tensorflow_version: The TensorFlow that wrote the SavedModel.

    Raises:
        ValueError: `model_name` is no name for a model server.
    """
    if not model_name or set(model_name) & set("/:\n"):
        raise ValueError(f'`model_name` must be without "/" and ":", received {model_name!r}')
    folder = base.resolve().name
    return _SERVE.format(
        model_name=model_name,
        writer=writer,
        what=what,
        files=files,
        folder=folder,
        shell_name=shlex.quote(model_name),
        shell_path=f'"$PWD"/{shlex.quote(folder)}',
        shell_mount=shlex.quote(f"/models/{model_name}"),
        operations=operations,
        max_batch=max_batch,
        rows=rows,
        tensorflow_version=tensorflow_version,
    )


def write_files(base: Path, files: Mapping[str, str]) -> Path:
    """Writes files of these names, each whole, into `base/serving`, which is returned.

    Raises:
        InputError: The disk is full or read-only.
    """
    directory = base / "serving"
    try:
        make_directory(directory)
        for name, text in files.items():
            write_file(directory / name, text.encode())
    except OSError as error:
        raise InputError(f"{directory}: cannot be written: {reason(error)}") from None
    return directory
