"""Guide to serving and calling an exported model, written next to the versions."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from keras_seq.serving.deployment import (
    DEPLOYMENT_FILES,
    SERVER_RELEASE,
    TEXT_PADDING,
    served_name,
    write_serving_files,
)
from keras_seq.serving.exporter import Exporter
from keras_seq.serving.graph_file.operations import TEXT

_SERVE = """\
# {model_name}

Written by {writer}.

Each directory whose name is a number is a version: a SavedModel that {purpose}.
The directory `serving` contains {files}. Model servers ignore it.

Run the commands below in the directory that contains `{folder}`.

## Serve

With the TensorFlow Serving binary:

```bash
tensorflow_model_server --port=8500 --rest_api_port=8501 --model_name={shell_name} \\
    --model_base_path={shell_path} \\
    --enable_batching --batching_parameters_file={shell_path}/serving/batching.txt
```

or with its Docker image:

```bash
docker run --rm -p 127.0.0.1:8500:8500 -p 127.0.0.1:8501:8501 -e MODEL_NAME={shell_name} \\
    -v {shell_path}:{shell_mount}:ro tensorflow/serving:{release} \\
    --enable_batching --batching_parameters_file={shell_mount}/serving/batching.txt
```

or on Kubernetes or KServe with `kubernetes.yaml` or `kserve.yaml`; each begins with its commands.

{operations}

The model was written by TensorFlow {tensorflow_version}. The tests of keras-seq load such models
with the TensorFlow and the tensorflow-text of TensorFlow Serving {release}.

A new export gets the next number. The server finds it without a restart, replays its warm-up
requests, switches to it, and unloads the old version; clients notice nothing. To roll back, move
the newest directory away.

Batching is for many concurrent clients. A single client gets its answers sooner without
`--enable_batching`. With batching, a request may contain up to {max_batch} {items}.
"""

_CALL = """\
## Call: REST

{rest_intro}```bash
curl -d {curl_data} localhost:8501/v1/models/{url_name}:predict
```

In Python, without any package:

```python
import json
import urllib.request

{rest_body}
url = "http://localhost:8501/v1/models/{url_name}:predict"
with urllib.request.urlopen(url, body) as response:
{rest_print}
```

## Call: gRPC

With the package `tensorflow-serving-api`:

```python
{grpc_import}import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

{grpc_read}request = predict_pb2.PredictRequest()
request.model_spec.name = {python_name}
{grpc_inputs}
with grpc.insecure_channel("localhost:8500") as channel:
    service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    response = service.Predict(request, timeout=60)
for output in tf.make_ndarray(response.outputs["{output}"]):
    print(output.decode())
```

Each of the three requests returns

```
{example_output}
```

## Inputs and outputs

{description}

A request may contain any number of rows, including none. The output of a row does not depend on
the other rows.
"""


@dataclass(frozen=True)
class GuideParts:
    """Parts of a guide that depend on the model. Most fields fill placeholders of the templates.

    `items` is the noun for the rows of a request, such as "texts". `output` is the name of the
    output that the gRPC client prints. `files` maps names of additional files to their contents.
    """

    writer: str
    purpose: str
    items: str
    padding: str
    curl_data: str
    rest_body: str
    rest_print: str
    grpc_inputs: str
    output: str
    example_output: str
    description: str
    rest_intro: str = ""
    grpc_import: str = ""
    grpc_read: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def text_guide(exporter: Exporter, example: str, example_output: str) -> GuideParts:
    """Returns the guide of a model with text input. The guide shows `example` and its output."""
    # A JSON string is also a Python string literal with the same value.
    inputs = {name: values[0] for name, values in exporter.requests([example]).items()}
    literals = {name: json.dumps(text, ensure_ascii=False) for name, text in inputs.items()}
    # Without other inputs, an instance may be the text alone.
    instance: Any = inputs["text"] if len(inputs) == 1 else inputs
    literal = json.dumps(instance, ensure_ascii=False)
    printed = ", ".join(f'prediction["{name}"]' for name in exporter.outputs)
    return GuideParts(
        writer="`keras-seq export`",
        purpose="takes text and returns text",
        items="texts",
        padding=TEXT_PADDING,
        curl_data=shlex.quote(json.dumps({"instances": [instance]}, ensure_ascii=False)),
        rest_body=f'body = json.dumps({{"instances": [{literal}]}}).encode()',
        rest_print=f"""\
    for prediction in json.load(response)["predictions"]:
        print({printed})""",
        grpc_inputs="\n".join(
            f'request.inputs["{name}"].CopyFrom(tf.make_tensor_proto([{text}]))'
            for name, text in literals.items()
        ),
        output=exporter.outputs[0],
        example_output=example_output,
        description=exporter.describe(),
    )


def write_guide(
    base: Path,
    parts: GuideParts,
    operations: Collection[str],
    max_batch: int,
    tensorflow_version: str,
) -> Path:
    """Writes `serving/README.md` next to the versions in `base`, and the files of `parts`.

    The commands contain no path above `base`, so they also work after `base` is copied to another
    machine. The name of `base` is the name of the model. Raises ValueError if a model server does
    not accept the name.
    """
    model_name = served_name(base)
    folder = base.resolve().name
    *names, last = ["this page", *(f"`{name}`" for name in (*DEPLOYMENT_FILES, *parts.files))]
    serve = _SERVE.format(
        model_name=model_name,
        writer=parts.writer,
        purpose=parts.purpose,
        files=f"{', '.join(names)} and {last}",
        folder=folder,
        shell_name=shlex.quote(model_name),
        shell_path=f'"$PWD"/{shlex.quote(folder)}',
        shell_mount=shlex.quote(f"/models/{model_name}"),
        operations=_describe_operations(operations),
        max_batch=max_batch,
        items=parts.items,
        tensorflow_version=tensorflow_version,
        release=SERVER_RELEASE,
    )
    call = _CALL.format(
        **vars(parts),
        url_name=quote(model_name),
        python_name=json.dumps(model_name, ensure_ascii=False),
    )
    return write_serving_files(base, {"README.md": f"{serve}\n{call}", **parts.files})


def _describe_operations(operations: Collection[str]) -> str:
    names = [f"`{name}`" for name in sorted(TEXT.intersection(operations))]
    if not names:
        return "A stock server is enough: the graph contains only TensorFlow's own operations."
    paragraph = (
        "A stock server is enough: besides TensorFlow's own operations, the graph contains "
        f"{', '.join(names)} of tensorflow-text, which TensorFlow Serving links."
    )
    return textwrap.fill(paragraph, 100, break_long_words=False, break_on_hyphens=False)
