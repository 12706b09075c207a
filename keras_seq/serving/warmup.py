"""Warm-up requests, which a model server replays before it serves a new version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Path of the warm-up requests in a version, and the maximum number of requests.
WARMUP_FILE = Path("assets.extra", "tf_serving_warmup_requests")
MAX_REQUESTS = 1000


def write_warmup(version: Path, batches: Sequence[Mapping[str, Sequence[str]]]) -> Path:
    """Writes warm-up requests of text into a SavedModel, so that clients avoid the slow first run.

    A request maps input names to strings. Returns the path of the file. Raises ValueError unless
    there are 1 to `MAX_REQUESTS` requests.
    """
    import tensorflow as tf

    if any(isinstance(lines, str) for batch in batches for lines in batch.values()):
        raise ValueError("an input must be a sequence of strings, received one string")
    requests = [
        {
            name: tf.make_tensor_proto(list(lines), dtype=tf.string, shape=[len(lines)])
            for name, lines in batch.items()
        }
        for batch in batches
    ]
    return write_warmup_tensors(version, requests)


def write_warmup_tensors(version: Path, requests: Sequence[Mapping[str, Any]]) -> Path:
    """Writes warm-up requests. A request maps input names to `TensorProto` messages.

    The file is a TFRecord file of `PredictionLog` messages. The server runs each request while it
    loads the version, and does not serve the version if a request fails. The requests contain no
    model name, so the server runs them on the version that contains the file.
    """
    # Imported here because these packages take seconds to import.
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    if not 1 <= len(requests) <= MAX_REQUESTS:
        raise ValueError(f"there must be 1 to {MAX_REQUESTS} requests, received {len(requests)}")
    path = Path(version) / WARMUP_FILE
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for inputs in requests:
            request = predict_pb2.PredictRequest()
            request.model_spec.signature_name = "serving_default"
            for name, tensor in inputs.items():
                request.inputs[name].CopyFrom(tensor)
            log = prediction_log_pb2.PredictLog(request=request)
            writer.write(prediction_log_pb2.PredictionLog(predict_log=log).SerializeToString())
    return path
