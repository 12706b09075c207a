"""Audio-specific parts of the guide to an exported speech recognizer."""

from __future__ import annotations

import json
import shlex
from typing import Any

import numpy as np

from keras_seq.serving.guide import GuideParts

PADDING = """\
# Recordings are padded to equal lengths. The padding is not recognized, because `lengths` says
# where each recording ends.
pad_variable_length_inputs: true"""

_DESCRIPTION = """\
`serving_default`, the signature used above: {source_description}.
`lengths` is their number in each row without padding. For each row:

* `text`: the recognized text.
* `score`: its log-probability.

`n_best`, with `"signature_name": "n_best"` next to `"inputs"` in REST or
`request.model_spec.signature_name = "n_best"` in gRPC: the {n_best} most probable texts of each
row, best first. If there are fewer, the rest is empty with a score of -1e30.

The output for a recording of length 0{silence} is the empty text with a
score of 0. With batching, each row must contain at least one number, because the server cannot pad
an empty row."""

_SOURCES = {
    "samples": "`samples`, one recording per row as floats,\n"
    "at the sample rate and loudness of the training data (16-bit integers are divided by 32768)",
    "features": "`features`, one recording per row,\n"
    "and for each of its steps {width} features as floats",
}


def recognizer_guide(
    folder: str, source: str, example: np.ndarray, example_output: str, n_best: int
) -> GuideParts:
    """Returns the guide of a speech recognizer, including an example request, `example.json`.

    `source` is the name of the input, "samples" or "features".
    """
    return sound_request(
        folder,
        source,
        example,
        writer="`keras_seq.serving.export_recognizer`",
        purpose="takes audio and returns text",
        padding=PADDING,
        rest_print="""\
    outputs = json.load(response)["outputs"]
for text, score in zip(outputs["text"], outputs["score"]):
    print(text, score)""",
        output="text",
        example_output=example_output,
        description=_DESCRIPTION.format(
            source_description=_SOURCES[source].format(width=example.shape[-1]),
            n_best=n_best,
            silence=", or of samples that are all 0," if source == "samples" else "",
        ),
    )


def sound_request(folder: str, source: str, example: np.ndarray, **parts: Any) -> GuideParts:
    """Returns a guide whose example request, `example.json`, is a recording.

    `parts` are the fields of `GuideParts` that the request does not decide.
    """
    path = json.dumps(f"{folder}/serving/example.json", ensure_ascii=False)
    request = {"inputs": {source: [_numbers(example)], "lengths": [len(example)]}}
    return GuideParts(
        items="recordings",
        curl_data=f"@{shlex.quote(folder)}/serving/example.json",
        rest_intro="`example.json` contains a request with one recording.\n\n",
        rest_body=f"""\
with open({path}, "rb") as example:
    body = example.read()""",
        grpc_import="import json\n\n",
        grpc_read=f"""\
with open({path}, "rb") as example:
    inputs = json.load(example)["inputs"]
""",
        grpc_inputs=f"""\
request.inputs["{source}"].CopyFrom(tf.make_tensor_proto(inputs["{source}"], tf.float32))
request.inputs["lengths"].CopyFrom(tf.make_tensor_proto(inputs["lengths"], tf.int32))""",
        files={"example.json": json.dumps(request) + "\n"},
        **parts,
    )


def _numbers(values: np.ndarray) -> list[Any]:
    """Converts an array to nested lists with the fewest digits that restore each float32."""
    if values.ndim > 1:
        return [_numbers(row) for row in values]
    return [float(str(value)) for value in values]
